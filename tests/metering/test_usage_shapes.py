"""Usage of gateways and providers beyond the six that costs are worked out for by hand.

Each record is written by hand after its provider's documentation; what a record does not say stays
unknown, and what is billed beside tokens leaves the answer's count, and so the cost, unknown.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.usage import TokenUsage, usage_of
from routeyard.pipelines.ingest.importers import reading

SHAPES = yaml.safe_load(Path(__file__).with_name("usage_shapes.yaml").read_text("utf-8"))


@pytest.mark.parametrize("name", SHAPES)
def test_usage_of_a_shape(name: str) -> None:
    record, said = SHAPES[name]["record"], SHAPES[name]["usage"]
    usage = TokenUsage(**said | {"beside": tuple(said.get("beside", ()))})
    assert usage_of(record) == usage
    read = reading.usage(record, "row 1")
    whole = not usage.hidden and not usage.beside
    assert (read.completion is not None) == whole


@pytest.mark.parametrize(
    "record",
    [{}, {"tokens": 9}, {"usage": {"prompt_tokens": 9}}, {"characters": 900, "units": 2},
     {"prompt_tokens": "many", "note": 1}],
)  # fmt: skip
def test_an_unknown_shape_is_unknown_and_not_free(record: dict[str, Any]) -> None:
    found = usage_of(record)
    assert (found.prompt, found.completion, found.read) == (None, None, None)


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 4}, "a total of 4"),
        ({"inputTokens": 5, "outputTokens": 1, "totalTokens": 3}, "a total of 3"),
        ({"prompt_tokens": 5.5, "completion_tokens": 1}, "is 5.5"),
    ],
)
def test_counts_that_contradict_each_other_are_refused_with_the_row(
    record: dict[str, Any], says: str
) -> None:
    with pytest.raises(SourceError, match=says) as refused:
        reading.usage(record, "log.jsonl, record 7")
    assert "record 7" in str(refused.value)
