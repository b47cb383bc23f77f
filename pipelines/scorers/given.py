"""`given`: carries over the score that a source already holds (RouterBench, BARTScore, …).

`read` takes the score as text, so that one call serves JSONL files and columns
alike; scores outside [0, 1] must be mapped by the reader of the source, which
knows their scale.
"""

from __future__ import annotations

import math

from routeyard.pipelines.scorers.scorer import Scorer, ScoreResult, ScoringInput

THRESHOLD = 0.5


def carried(score: float | None) -> ScoreResult:
    """Reading of a stored score; a missing one is `abstain`, never 0."""
    if score is None or math.isnan(score):
        return ScoreResult("abstain", reason="the source carries no score")
    if not 0 <= score <= 1:
        return ScoreResult("error", reason=f"the source's score {score} is not in [0, 1]")
    reason = f"score {score:g} of the source, threshold {THRESHOLD:g}"
    return ScoreResult.of(score >= THRESHOLD, None, None, reason, score=float(score))


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """Reads `metadata["given_score"]`, else the output itself as a number."""
    stored = asked.metadata.get("given_score")
    if stored is None:
        stored = output.strip() or None
    try:
        return carried(None if stored is None else float(str(stored)))
    except ValueError:
        return ScoreResult("abstain", reason=f"no score in {str(stored)[:40]!r}")


SCORER = Scorer("given", "1", read, threshold=THRESHOLD, needs_reference=False)
