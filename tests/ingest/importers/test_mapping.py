"""The one mapping: keys, paths, alternatives, texts, constants; what a record lacks is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest.importers.reading import ImportedAnswer, ImportResult
from routeyard.pipelines.ingest.mapping import ANSWERS, STEPS, Mapped

MAPPED = Mapped(
    question={"id": "{{ suite }}/{{ n }}", "question": "asked", "task": "suite", "scorer": "=math"},
    answer={
        "model": "arm", "text": "said", "score": "grade", "cost_usd": "cost",
        "prompt_tokens": "usage.input_tokens | usage.prompt_tokens",
    },
    needs=["suite", "n"],
    without={"score text": "neither text nor grade"},
)  # fmt: skip


def read(*records: dict[str, object]) -> tuple[list[ImportedAnswer], ImportResult]:
    result = ImportResult(Path("file"))
    placed = [(f"file, row {number}", dict(one)) for number, one in enumerate(records, 1)]
    return list(MAPPED.read(placed, result)), result


def test_a_record_becomes_a_question_and_an_answer() -> None:
    usage = {"prompt_tokens": 7}
    row = {"suite": "s", "n": 3, "asked": "2 + 2?", "arm": "m", "grade": "true", "usage": usage}
    (answer,), result = read(row)
    assert answer == ImportedAnswer("s/3", "m", score=1.0, prompt_tokens=7)
    assert (question := result.questions["s/3"]).question == "2 + 2?"
    assert (question.task, question.scorer, question.prompt) == ("s", "math", None)


def test_a_record_may_hold_several_answers_and_some_are_left_out() -> None:
    both = [{"arm": "a", "said": "4", "cost": 0}, {"arm": "b", "said": None, "grade": None}]
    (answer,), result = read({"suite": "s", "n": 1, "asked": "?", ANSWERS: both})
    # A cost of 0 beside an answer is a missing price.
    assert answer == ImportedAnswer("s/1", "a", text="4", cost_usd=None)
    assert result.left_out == {"neither text nor grade": 1}


@pytest.mark.parametrize(
    ("odd", "says"),
    [({"grade": 7}, "is not a number in"), ({"usage": 5}, "object"),
     ({"usage": {"input_tokens": -1}}, "expected an amount")],
)  # fmt: skip
def test_a_value_of_another_kind_is_refused_with_its_place(
    odd: dict[str, object], says: str
) -> None:
    with pytest.raises(SourceError, match=says) as error:
        read({"suite": "s", "n": 1, "asked": "?", "arm": "a"} | odd)
    assert error.value.where == "file, row 1"


def test_calls_of_an_answer_are_its_steps_and_their_sums_its_counts() -> None:
    mapped = Mapped(
        question={"id": "n", "question": "n", "task": "=agents"}, needs=["n"], repeated=True,
        answer={"model": "arm", "score": "grade", "cost_usd": "cost"},
        step={"acted_by": "by", "prompt_tokens": "in", "completion_tokens": "out"},
    )  # fmt: skip
    calls = [{"by": "b", "in": 5, "out": 2}, {"in": 7}]
    record = {"n": "q", "arm": "a", "grade": 1, "cost": 0, STEPS: calls}
    result = ImportResult(Path("file"))
    first, second = mapped.read([("1", record), ("2", {**record, STEPS: []})], result)
    assert (first.calls, first.prompt_tokens, first.completion_tokens) == (2, 12, None)
    assert (first.sample, second.sample, second.prompt_tokens) == (0, 1, None)
    # A cost of 0 beside tokens is a missing price, not free.
    assert first.cost_usd is None
    rows = [(row["acted_by"], row["action"], row["sample"], row["outcome"]) for row in result.steps]
    assert rows == [("b", "call", 0, 1.0), ("a", "answer", 0, 1.0)]
