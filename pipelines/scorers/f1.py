"""`f1`: SQuAD's token F1, the best of several references (Rajpurkar et al. 2016, §6.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from routeyard.pipelines.scorers.comparison.words import tokens
from routeyard.pipelines.scorers.graded import graded
from routeyard.pipelines.scorers.scorer import Scorer, ScoreResult, ScoringInput

THRESHOLD = 0.5


def token_f1(answer: Sequence[str], reference: Sequence[str]) -> float:
    """2PR/(P+R) over the bag of words; two empty bags agree, one empty bag scores 0."""
    if not answer or not reference:
        return float(not answer and not reference)
    common = sum((Counter(answer) & Counter(reference)).values())
    return 2 * common / (len(answer) + len(reference))


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """Scores the short answer (`answers.short_answer`) against every reference."""
    return graded(asked, output, token_f1, tokens, THRESHOLD, "F1")


SCORER = Scorer(
    "f1",
    "10",
    read,
    threshold=THRESHOLD,
    instruction=(
        'End with one line of the form "Answer: ...", as short as possible, no full sentence.'
    ),
    escalate_on="not_correct",
)
