"""How probably labelled answers are right: the measured rates that a release's manifest carries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import pyarrow as pa
from pyarrow.json import ParseOptions, ReadOptions, read_json

from routeyard.pipelines.errors import SourceError

#: One row of each deciding scorer, kind of answer and verdict.
SCHEMA = pa.schema(
    {
        "decided_by": pa.string(),
        "verdict": pa.string(),
        "task": pa.string(),
        "format": pa.string(),
        "length": pa.string(),
        "script": pa.string(),
        "labels": pa.int64(),
        "p_correct": pa.float64(),
    }
)
#: The same for each scorer and label; `p_correct` is null where no kind of them was measured.
BY_SCORER = """
SELECT decided_by, verdict = 'correct' AS correct, sum(labels)::BIGINT AS labels,
    coalesce(sum(labels) FILTER (p_correct IS NOT NULL), 0)::BIGINT AS measured,
    sum(labels * p_correct) / sum(labels) FILTER (p_correct IS NOT NULL) AS p_correct
FROM label_kinds WHERE verdict <> 'abstain' GROUP BY ALL ORDER BY ALL
"""


#: Keys of a row that are no column are left out.
_READ, _ALONE = (
    ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="ignore"),
    ReadOptions(use_threads=False),
)


def label_kinds(figures: Mapping[str, Any]) -> pa.Table:
    """Kinds of labels with `p_correct`, the probability that such an answer is right.

    Args:
        figures: `figures` of a manifest; a release without measured rates has no rows.

    Raises:
        SourceError: the manifest holds something else there.
    """
    try:
        rows = [
            {**row, "decided_by": row["scorer"]}
            for row in (figures.get("label_errors") or {}).get("kinds") or []
        ]
        return _table(rows)
    except (AttributeError, KeyError, TypeError, pa.ArrowException) as error:
        raise SourceError(
            f"`figures.label_errors.kinds` of the manifest is no list of kinds: {error}",
            where="manifest.json",
            next_step="build the release again",
        ) from error


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows of `SCHEMA`. Arrow imports pandas to read Python's values, but not to read JSON."""
    if not rows:
        return pa.Table.from_batches([], SCHEMA)
    lines = "\n".join(map(json.dumps, rows)).encode()
    return read_json(BytesIO(lines), read_options=_ALONE, parse_options=_READ)
