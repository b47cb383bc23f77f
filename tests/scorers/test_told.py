"""Answers in many forms and languages, each with what it commits to: `told.txt`.

What is right is never called incorrect, what is wrong or not committed to never correct.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from routeyard.pipelines.label.scorers import SCORERS, symbolic
from routeyard.pipelines.label.scorers.scorer import ScoringInput

_LONG = "We read the problem once more and note what is given. " * 12
_LINES = Path(__file__).with_name("told.txt").read_text(encoding="utf-8").splitlines()
TOLD = [line.split(" ¦ ") for line in _LINES if line and line[0] != "#"]


@pytest.fixture(scope="module", autouse=True)
def _worker() -> Iterator[None]:
    yield
    symbolic.close()


@pytest.mark.parametrize("scorer", sorted({row[0] for row in TOLD}))
def test_what_is_told_is_read(scorer: str) -> None:
    read = SCORERS.get(scorer).score
    outcomes: Counter[str] = Counter()
    for name, right, wrong, question, choices, text in TOLD:
        if name != scorer:
            continue
        output = text.replace("⏎", "\n").replace("⟪long⟫", _LONG)
        options = tuple(choices.split(";; ")) if choices else ()
        for one in filter(None, [right, *wrong.split(";; ")]):
            said = read(ScoringInput(question.replace("⏎", "\n"), (one,), options), output)
            if one == right:
                outcomes[said.outcome] += 1
                assert said.outcome in ("correct", "abstain"), (output, said)
            else:
                assert said.outcome in ("incorrect", "abstain"), (output, one, said)
    if outcomes.total() >= 20:  # abstaining everywhere would be no reading
        assert outcomes["correct"] >= 0.9 * outcomes.total(), outcomes


def test_there_are_enough() -> None:
    assert len(TOLD) >= 400
