"""No output takes a scorer more than a second, however repetitive."""

from __future__ import annotations

import time

import pytest

from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.scorer import ScoringInput
from tests.scorers import adversarial
from tests.scorers.said import SAID

#: Scorers that do not read a long text once, and what bounds them instead.
APART = {
    "given": "reads no text",
    "code": "runs the text as a program, under the sandbox's limits of time and memory",
    "bartscore": "asks a language model, which reads so many tokens and no more",
    "rouge_l": "compares whole texts: measured below, on ten thousand words",
    "meteor": "compares whole texts: measured below, on ten thousand words",
}
READERS = sorted(SCORERS.builtin.keys() - APART.keys())
CHOICES = ("Rome", "Paris, the city", "New York")


def _asked(name: str) -> ScoringInput:
    scorer = SCORERS.get(name)
    for reference in SAID:
        for choices in ((), CHOICES):
            asked = ScoringInput("what percent?", (reference,), choices)
            if scorer.read(asked, "x").outcome != "error" and bool(choices) == scorer.lettered:
                return asked
    pytest.fail(
        f"{name} takes no reference of SAID: add one that it takes, with answers, to "
        "tests/scorers/said.py",
        pytrace=False,
    )


def _slowest(name: str, size: int, every: int = 1) -> tuple[float, str]:
    """Of each scorer other outputs, where not all are read."""
    read, asked = SCORERS.get(name).read, _asked(name)
    worst = (0.0, "")
    for piece, output in adversarial.outputs(size)[READERS.index(name) % every :: every]:
        began = time.process_time()
        read(asked, output)
        worst = max(worst, (time.process_time() - began, piece))
    return worst


@pytest.mark.parametrize("name", READERS)
def test_fourteen_thousand_characters(name: str) -> None:
    seconds, piece = _slowest(name, 14_000, every=13)
    assert seconds < 1, f"{name} took {seconds:.2f} s on {piece!r}"


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_million_characters(name: str) -> None:
    seconds, piece = _slowest(name, 1_000_000)
    assert seconds < 1, f"{name} took {seconds:.2f} s on {piece!r}"


def test_who_is_measured_apart_is_a_scorer() -> None:
    assert APART.keys() <= SCORERS.builtin.keys()


@pytest.mark.parametrize("name", ["rouge_l", "meteor"])
def test_whole_texts_of_ten_thousand_words(name: str) -> None:
    read = SCORERS.get(name).read
    text = "the cat sat on a mat while many dogs ran " * 1_000
    read(ScoringInput("", ("warm up",)), "warm up")  # WordNet is loaded once
    began = time.process_time()
    assert read(ScoringInput("", (text,)), text).outcome == "correct"
    assert time.process_time() - began < 2
