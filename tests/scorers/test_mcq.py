"""Traps of multiple-choice reading."""

from __future__ import annotations

import pytest

from routeyard.pipelines.label.scorers.mcq import SCORER, read
from routeyard.pipelines.label.scorers.scorer import ScoringInput

CITIES = ("Rome", "Paris", "New York", "York", "none of these")
ASKED = ScoringInput("Capital of France?", ("B",), CITIES)


@pytest.mark.parametrize(
    ("output", "letter"),
    [
        ("The answer is (B).", "B"),
        ("the answer is b.", "B"),
        ("Answer: B", "B"),
        ("**Answer:** **B**", "B"),
        ("Final answer: \\boxed{B}", "B"),
        ("\\boxed{\\text{B}}", "B"),
        ('{"reasoning": "A is wrong", "answer": "B"}', "B"),
        ("B", "B"),
        ("B) Paris", "B"),
        ("B. Paris", "B"),
        ("(B)", "B"),
        ("Paris", "B"),
        ("The answer is Paris.", "B"),
        ("The correct option is B.", "B"),
        ("Option B is correct.", "B"),
        ("A is in Italy, so the answer must be (B)", "B"),
        # a corrected answer beats an earlier one
        ("The answer is (A). Wait, that is Italy. The answer is (B).", "B"),
        # the content of the longer option is not the shorter one's
        ("The answer is New York.", "C"),
        ("The answer is York.", "D"),
        # a run-on generation: the next question's answer is not ours
        ("The answer is (B).\n\nQuestion: Capital of Italy?\nAnswer: (A)", "B"),
    ],
)
def test_reads_the_option(output: str, letter: str) -> None:
    reading = read(ASKED, output)
    assert reading.extracted is not None
    assert reading.outcome == ("correct" if letter == "B" else "incorrect")
    assert reading.reason.split(": ")[1].startswith(letter)
    assert not reading.conflict
    assert reading.span is not None
    assert output[slice(*reading.span)]


@pytest.mark.parametrize(
    "output",
    [
        "",
        "I do not know.",
        "The answer is a matter of taste.",  # "a" is an article
        "The answer is I think hard to find.",  # "I" is a pronoun
        "We take vitamin B and vitamin C",  # letters that are no commitment
        "The answer is not B",
        "Options:\nA. Rome\nB. Paris",  # merely repeats the options
    ],
)
def test_abstains_without_a_commitment(output: str) -> None:
    assert read(ASKED, output).outcome == "abstain"


def test_conflict_is_flagged() -> None:
    # Answers the few-shot questions too (gemini-1.5-pro-002 did).
    assert read(ASKED, "The answer is (A).\n\nThe answer is (C).\n\nThe answer is (B).").conflict
    assert not read(ASKED, "The answer is (B). So, the answer is B.").conflict


def test_several_options_in_one_breath_are_contested_and_none_is_extracted() -> None:
    # "CF" is no option: counted as a letter it would disagree with every other reading.
    reading = read(ASKED, "The answers are A and B.")
    assert (reading.outcome, reading.extracted, reading.conflict) == ("incorrect", None, True)
    assert "names several options, AB" in reading.reason
    assert reading.span is not None
    both = read(ScoringInput("Which?", ("A", "B"), CITIES), "The answers are A and B.")
    assert (both.outcome, both.extracted, both.conflict) == ("correct", "AB", False)


@pytest.mark.parametrize(
    ("output", "outcome"),
    [
        ("The answer is (E).", "incorrect"),
        ("Answer: E", "incorrect"),
        ("So we get \\boxed{F}.", "incorrect"),
        ('{"reasoning": "none fits", "answer": "E"}', "incorrect"),
        ("The answer is (E). Wait, the answer is (B).", "correct"),
        ("The answer is E. coli.", "abstain"),
        ("Answer: T", "abstain"),  # "true"
        ("The answer is not (E).", "abstain"),
    ],
)
def test_an_option_that_does_not_exist_is_wrong(output: str, outcome: str) -> None:
    asked = ScoringInput("Which?", ("B",), ("true", "gold", "silver", "lead"))
    assert SCORER.score(asked, output).outcome == outcome
