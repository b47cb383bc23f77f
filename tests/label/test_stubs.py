"""The audit doubts the text behind a stored score."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from routeyard.pipelines.label.aggregate import decide
from routeyard.pipelines.label.audit.audit import Audit, audit
from routeyard.pipelines.label.audit.stubs import is_stub
from routeyard.pipelines.label.rules import file_verdicts
from tests.support.label_tables import qid, queries, responses


def audited(asked: object, texts: object) -> Audit:
    verdicts = file_verdicts(asked, texts)  # type: ignore[arg-type]
    return audit(asked, texts, verdicts, decide(asked, texts, verdicts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    ["", "  ", "I do", "Okay,", "The", "Let's", "Sure, here is the", "I am", "To solve this,"],
)
def test_a_text_that_says_nothing_is_a_stub(text: str) -> None:
    assert is_stub(text)


@pytest.mark.parametrize(
    # short answers, right or wrong
    "text",
    ["B", "(C)", "42", "$5", "yes", "Paris", "I do not know the answer to this", "New York", "A",
     "The answer is (A).", "So I choose D", "It is Paris", "The answer: yes", "the answer is rome"],
)  # fmt: skip
def test_a_short_answer_is_none(text: str) -> None:
    assert not is_stub(text)


def test_stubs_scored_as_wrong_are_found_with_what_they_cost() -> None:
    asked = queries([f"word{i}" for i in range(30)], scorer="em")
    right: list[str | None] = [f"word{i}" for i in range(30)]
    stubbed = ["I do" if i % 3 == 0 else text for i, text in enumerate(right)]
    scores = [0.0 if i % 3 == 0 else 1.0 for i in range(30)]
    found = audited(asked, responses({"m": stubbed, "fine": right}, m=scores, fine=[1.0] * 30))
    stubs = [one for one in found.findings if "stub" in one.kind]
    assert {(one.kind, one.about) for one in stubs} == {("stub_answers", "m")}
    assert "10 of 30" in stubs[0].says
    assert "66.7% as stored, 100.0% over readable" in stubs[0].says
    rows = {row["model_id"]: row for row in found.tables["readable"].to_pylist()}
    assert rows["m"]["accuracy"] == pytest.approx(2 / 3)
    assert rows["m"]["accuracy_readable"] == 1
    assert rows["fine"]["stubs"] == 0


def test_a_short_right_answer_is_not_taken_away_as_a_stub() -> None:
    # the reference itself reads like an opening
    asked = queries(["I do"] * 6, scorer="em")
    found = audited(asked, responses({"m": ["I do"] * 6}, m=[1.0] * 6))
    assert not [one for one in found.findings if one.kind == "stub_answers"]


def test_a_constant_text_over_many_questions_is_found() -> None:
    asked = queries([f"word{i}" for i in range(25)], scorer="em")
    texts = {"m": ["I cannot help with that request."] * 25, "s": ["Okay,"] * 25}
    found = audited(asked, responses(texts, m=[0.0] * 25, s=[0.0] * 25))
    named = {(one.kind, one.about) for one in found.findings}
    assert {("constant_text", "m"), ("stub_constant_text", "s")} <= named


def test_one_text_scored_both_ways_is_found() -> None:
    asked = queries(["alpha", "beta"], scorer="em")
    texts = responses({"a": ["alpha", "x"], "b": ["alpha", "y"]}, a=[1.0, 0.0], b=[0.0, 0.0])
    found = audited(asked, texts)
    assert ("same_text_scored_both_ways", qid(0)) in {(o.kind, o.about) for o in found.findings}
    assert len([o for o in found.findings if "both_ways" in o.kind]) == 1


@pytest.mark.data
def test_omnisbench_stubs_are_the_empty_answers(data: Path) -> None:
    import pyarrow.parquet as pq

    items = pq.read_table(data / "omnisbench" / "items.parquet").to_pylist()
    empty = [one for one in items if not (one["response_text"] or "").strip()]
    assert len(empty) == 20
    assert all(is_stub(one["response_text"]) for one in empty)
    others = [one for one in items if one["passed"] and is_stub(one["response_text"])]
    assert json.dumps(others) == "[]"


def test_an_answer_by_letter_stands_under_many_questions_and_is_no_finding() -> None:
    asked = queries(["A", "B", "C", "D"] * 20, scorer="em")
    texts = ["The answer is (A)."] * 80
    found = audited(asked, responses({"m": texts}, m=[1.0, 0.0, 0.0, 0.0] * 20))
    kinds = {one.kind for one in found.findings}
    assert not [kind for kind in kinds if "stub" in kind or "constant" in kind]
    refusing = audited(
        asked, responses({"m": ["My rules forbid me to speak about it."] * 80}, m=[0.0] * 80)
    )
    assert "constant_text" in {one.kind for one in refusing.findings}
