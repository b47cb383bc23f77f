"""Traps of reading one number."""

from __future__ import annotations

import pytest

from routeyard.pipelines.label.scorers.numeric import read
from routeyard.pipelines.label.scorers.scorer import ScoringInput


@pytest.mark.parametrize(
    ("reference", "output", "outcome"),
    [
        ("18", '{"reasoning": "16 - 3 - 4 = 9", "answer": "$18"}', "correct"),
        ("29", "Answer: $29.00", "correct"),  # was read as 00
        ("10000", "\\boxed{10{,}000}", "correct"),
        ("0.111", "Answer: 0,111", "incorrect"),
        ("111", "Answer: 0,111", "incorrect"),
        ("14", '{"answer": "6 + 8 = 14"}', "correct"),  # first number of an expression
        ("6", '{"answer": "6 + 8 = 14"}', "incorrect"),
        ("5", "Answer: 0.5", "incorrect"),
        ("100000", "Answer: 10⁵", "correct"),  # compatibility folding reads 105
        ("105", "Answer: 10⁵", "incorrect"),
        ("5/2", "Answer: 2½", "correct"),
        ("21", "The answer is twenty-one.", "correct"),
        ("2", '{"answer": "2:00 pm"}', "correct"),
        ("2", '{"answer": "2:10 pm"}', "incorrect"),
        ("1" + "0" * 10_640, "Answer: 1" + "0" * 10_640, "correct"),  # int() refuses it
        ("1" + "0" * 10_640, "Answer: 1" + "0" * 10_639 + "1", "incorrect"),
    ],
)
def test_reads_the_number(reference: str, output: str, outcome: str) -> None:
    assert read(ScoringInput("", (reference,)), output).outcome == outcome
