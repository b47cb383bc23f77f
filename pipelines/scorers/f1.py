"""`f1`: SQuAD's token F1, the best of several references (Rajpurkar et al. 2016, §6.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from routeyard.pipelines.scorers.graded import graded


def token_f1(answer: Sequence[str], reference: Sequence[str]) -> float:
    """2PR/(P+R) over the bag of words; two empty bags agree, one empty bag scores 0."""
    if not answer or not reference:
        return float(not answer and not reference)
    common = sum((Counter(answer) & Counter(reference)).values())
    return 2 * common / (len(answer) + len(reference))


SCORER = replace(
    graded(
        "f1",
        "12",
        "F1",
        token_f1,
        threshold=0.5,
        instruction=(
            'End with one line of the form "Answer: ...", as short as possible, no full sentence.'
        ),
    ),
    escalate_on="not_correct",
)
