"""Where in an output the literal stands, and what is none."""

from __future__ import annotations

import pytest

from routeyard.pipelines.label.scorers.literal import read
from routeyard.pipelines.label.scorers.scorer import ScoringInput


@pytest.mark.parametrize(
    ("output", "how", "start"),
    [
        ("  [1, 2]\n", "whole output", 2),
        ("<think>[9]</think>\n[1, 2]", "whole output", 19),
        ("It is [ANSWER] [1, 2] [/ANSWER] so", "field", 15),
        ("[ANSWER]\n[1, 2]", "field", 9),  # never closed
        ("[ANSWER] [9] [/ANSWER] no, [ANSWER] [1, 2] [/ANSWER]", "field", 36),
        ("[ANSWER] assert f(3) == [1, 2] [/ANSWER]", "assertion", 24),
        ("x\n```python\n[1, 2]\n```\n", "code block", 12),
        ("x\n```\n[9]\n```\ny\n```\n[1, 2]\n```", "code block", 20),  # the last one
        ("x\n```\nassert f(3) == [1, 2]\n```\nbecause assert f(4) == [9]", "assertion", 21),
        ("So:\nassert f(3) == [9]\nassert f(3) == [1, 2]\nthat is it", "assertion", 38),
        ("f(3) == [1, 2]", "assertion", 8),
        ("The answer is [1, 2].", "stated", 14),
        ("It returns\n[1, 2]", "last line", 11),
        ("It returns a list: `[1, 2]`.", "stated", 20),
    ],
)
def test_the_literal_is_found_and_its_span_is_its_own(output: str, how: str, start: int) -> None:
    reading = read(ScoringInput("", ("[1, 2]",)), output)
    assert reading.reason == f"{how}: list [1, 2]"
    assert reading.span == (start, start + 6)
    assert output[slice(*reading.span)] == "[1, 2]"


@pytest.mark.parametrize(
    "output",
    [
        "Hence `[1, 2]` and so on.",  # does not end the text
        "Traceback (most recent call last):\nKeyError: 1\n[1, 2] was given\n[1, 2]",
        "The list has two elements.",
    ],
)
def test_prose_and_tracebacks_give_no_literal(output: str) -> None:
    assert read(ScoringInput("", ("[1, 2]",)), output).outcome == "abstain"


def test_a_printed_text_is_compared_as_it_stands() -> None:
    asked = ScoringInput("", ("a b\n  c",))  # no literal: what a program printed
    assert read(asked, "```\na b \n  c\n```").outcome == "correct"  # space at the line ends
    assert read(asked, "```\na b\nc\n```").outcome == "incorrect"
    assert read(asked, "a b\n  c").reason.startswith("whole output: text")
