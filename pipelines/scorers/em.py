"""`em`: exact match after SQuAD normalisation, against any of several references."""

from __future__ import annotations

from functools import lru_cache

from pipelines.scorers.answers.short_answer import short_answer
from pipelines.scorers.answers.words import normalise
from pipelines.scorers.scorer import Asked, Reading, Scorer


@lru_cache(maxsize=65536)
def _normal(reference: str) -> str:
    return normalise(reference)


def read(asked: Asked, output: str) -> Reading:
    """Correct when the short answer equals a reference, both normalised."""
    known = [normal for reference in asked.references if (normal := _normal(reference))]
    if not known:
        return Reading("error", reason="no reference has any word left after normalisation")
    found = short_answer(output)
    if found is None:
        return Reading("abstain", reason="no short answer")
    answer, span, conflict = found
    normal = normalise(answer)
    right = normal in known
    reason = f"{normal[:120]!r} {'equals' if right else 'is none of'} the references"
    if conflict:
        reason += "; the output commits to several answers"
    return Reading(
        "correct" if right else "incorrect",
        1.0 if right else 0.0,
        output[slice(*span)],
        span,
        reason,
        conflict,
    )


SCORER = Scorer(
    "em",
    "1",
    read,
    instruction='End with one line of the form "Answer: ...", holding the answer and nothing else.',
    escalate_on="not_correct",
)
