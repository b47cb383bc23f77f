"""Hand-written cases of every scorer that reads an answer (`cases/*.txt`), each with its trap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from routeyard.pipelines.label.scorers import SCORERS, symbolic
from routeyard.pipelines.label.scorers.scorer import ScoringInput
from tests.scorers import case_files

CASES = case_files.cases()


@pytest.fixture(scope="module", autouse=True)
def _worker() -> Iterator[None]:
    yield
    symbolic.close()


def test_there_are_at_least_300_cases_each_with_its_trap() -> None:
    assert len(CASES) >= 300
    assert all(case.trap.strip() for case in CASES)
    assert min(Counter(case.scorer for case in CASES).values()) >= 20


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: case_files.Case) -> None:
    reading = SCORERS.get(case.scorer).read(case.asked, case.output)
    if case.scorer != "mcq":
        assert reading.outcome == case.wanted, f"{case.trap}: {reading.reason}"
        return
    if case.wanted == "??":  # no one option is read, contested or not
        assert reading.extracted is None, f"{case.trap}: {reading.reason}"
        return
    if case.wanted == "?":
        assert reading.outcome == "abstain" or reading.conflict, f"{case.trap}: {reading.reason}"
        return
    assert reading.extracted == case.wanted.rstrip("~"), f"{case.trap}: {reading.reason}"
    assert reading.conflict == case.wanted.endswith("~"), case.trap


@pytest.mark.parametrize("output", ["Answer: `", "Answer: ``", "The answer is `."])
def test_an_empty_answer_in_ticks_has_a_span_of_its_own(output: str) -> None:
    # It ended before it began, and what it marked for a person was the sign before it.
    first, last = SCORERS.get("literal").read(ScoringInput("", ("a b",)), output).span or (1, 0)
    assert first <= last
