"""`given`: a score the source carries."""

from __future__ import annotations

import pytest

from routeyard.pipelines.label.scorers.graded import carried, read
from routeyard.pipelines.label.scorers.scorer import ScoringInput


@pytest.mark.parametrize(
    ("score", "outcome"),
    [
        (1.0, "correct"),
        (0.5, "correct"),
        (0.49, "incorrect"),
        (0.0, "incorrect"),
        (None, "abstain"),  # a missing score is not 0
        (float("nan"), "abstain"),
        (1.5, "error"),
        (-0.1, "error"),
    ],
)
def test_carries_the_score(score: float | None, outcome: str) -> None:
    reading = carried(score)
    assert reading.outcome == outcome
    assert (reading.score is not None) == (outcome in ("correct", "incorrect"))


def test_reads_metadata_before_the_output() -> None:
    assert read(ScoringInput("", (), metadata={"given_score": 0.9}), "0.1").score == 0.9
    assert read(ScoringInput("", ()), "0.25").score == 0.25
    assert read(ScoringInput("", ()), "no score").outcome == "abstain"
