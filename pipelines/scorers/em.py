"""`em`: exact match after SQuAD normalisation, against any of several references.

Folded are: case, the articles a, an and the, punctuation (but not operators and
decimal points), quotes, markdown and LaTeX text macros around the answer,
thousands separators, runs of space, and Unicode's compatible forms. Where any of
these carries meaning (program output, data), `literal` is the scorer.

An empty reference is an error, unless the source means it
(`metadata["empty_reference"]`: the right answer is to answer nothing).
"""

from __future__ import annotations

from functools import lru_cache

from routeyard.pipelines.scorers.comparison.words import normalise
from routeyard.pipelines.scorers.extraction.short_answer import short_answer
from routeyard.pipelines.scorers.scorer import Scorer, ScoreResult, ScoringInput


@lru_cache(maxsize=65536)
def _normal(reference: str) -> str:
    return normalise(reference)


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """Correct when the short answer equals a reference, both normalised."""
    known = [normal for reference in asked.references if (normal := _normal(reference))]
    empty = asked.metadata.get("empty_reference") is True and "" in asked.references
    if empty and not output.strip():
        return ScoreResult("correct", 1.0, "", (0, 0), "nothing, which is the reference")
    if not known and not empty:
        return ScoreResult("error", reason="no reference has any word left after normalisation")
    found = short_answer(output, truncated=asked.truncated)
    if found is None:
        return ScoreResult("abstain", reason="no short answer")
    answer, span, conflict = found
    normal = normalise(answer)
    right = normal in known
    reason = f"{normal[:120]!r} {'equals' if right else 'is none of'} the references"
    if conflict:
        reason += "; the output commits to several answers"
    return ScoreResult.of(right, output[slice(*span)], span, reason, conflict)


SCORER = Scorer(
    "em",
    "5",
    read,
    instruction='End with one line of the form "Answer: ...", holding the answer and nothing else.',
    escalate_on="not_correct",
)
