"""An answer beside another that is denied, supposed or somebody else's: never silently wrong.

Every text of `contrasts.txt` commits to {A}. A scorer that reads it may abstain, but it never
calls {A} incorrect and never calls {W} correct.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.scorer import ScoringInput

OPTIONS = ("red", "green", "blue", "gold")
#: (scorer, {A}, {W}, choices)
KINDS = [
    ("numeric", "8", "9", ()),
    ("numeric", "-3", "3", ()),
    ("numeric", "1250", "1350", ()),
    ("mcq", "C", "B", OPTIONS),
    ("mcq", "A", "D", OPTIONS),
    ("contains", "Paris", "Lyon", ()),
    ("contains", "1969", "1972", ()),
    ("contains", "Marie Curie", "Lise Meitner", ()),
    ("em", "Paris", "Lyon", ()),
    ("math", r"\frac{\pi}{2}", r"\frac{\pi}{3}", ()),
    ("math", "x^2+1", "x^2-1", ()),
    ("literal", "[1, 2]", "[2, 1]", ()),
]
#: What they decide of all texts at least: abstaining everywhere would be no reading.
DECIDED = {"numeric": 0.9, "mcq": 0.85, "contains": 0.85, "math": 0.6, "em": 0.5, "literal": 0.25}


def _texts() -> list[tuple[str, str]]:
    found, language = [], ""
    lines = Path(__file__).with_name("contrasts.txt").read_text(encoding="utf-8")
    for line in lines.splitlines():
        if line.startswith("== "):
            language = line[3:]
        elif line and not line.startswith("# "):
            found.append((language, line.replace("⏎", "\n")))
    return found


TEXTS = _texts()


def _said(text: str, right: str, wrong: str) -> str:
    return text.replace("{A}", right).replace("{W}", wrong)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0]} {kind[1]}")
def test_no_text_is_read_wrong_without_a_sign(kind: tuple[str, str, str, tuple[str, ...]]) -> None:
    name, right, wrong, choices = kind
    read = SCORERS.get(name).read
    outcomes: Counter[str] = Counter()
    for language, text in TEXTS:
        if name == "literal" and "{A}" in text and text[text.index("{A}") - 1] in "\"'[{(":
            continue  # a string, list or set that holds the literal is another literal
        output = _said(text, right, wrong)
        outcome = read(ScoringInput("Which one?", (right,), choices), output).outcome
        outcomes[outcome] += 1
        assert outcome != "incorrect", (language, output)
        other = read(ScoringInput("Which one?", (wrong,), choices), output)
        assert other.outcome != "correct", (language, output, other.reason)
    assert outcomes["correct"] >= DECIDED[name] * outcomes.total(), outcomes
