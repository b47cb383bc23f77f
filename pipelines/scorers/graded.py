"""What the graded scorers share: best reference, threshold, span, reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from routeyard.pipelines.scorers.extraction.short_answer import short_answer, whole_answer
from routeyard.pipelines.scorers.scorer import ScoreResult, ScoringInput

#: Instruction of scorers that compare the whole text.
BARE_TEXT = "Reply with the requested text only, without an introduction or closing remarks."

Tokens = Callable[[str], list[str]]
Score = Callable[[Sequence[str], Sequence[str]], float]


def graded(
    asked: ScoringInput,
    output: str,
    score: Score,
    tokens: Tokens,
    threshold: float,
    name: str,
    *,
    whole: bool = False,
) -> ScoreResult:
    """Best score of the answer over the references; `correct` at or above the threshold.

    Args:
        score: (answer tokens, reference tokens) → score in [0, 1].
        whole: Compare the whole output (summaries, translations), not its
            short answer.
    """
    wanted = [words for one in asked.references if (words := tokens(one))]
    if not wanted:
        return ScoreResult("error", reason="no reference has any word left after normalisation")
    found = whole_answer(output) if whole else short_answer(output, truncated=asked.truncated)
    if found is None:
        return ScoreResult("abstain", reason="no answer to compare")
    answer, span, conflict = found
    said = tokens(answer)
    best = max(score(said, reference) for reference in wanted)
    reason = f"{name} {best:.3f}, threshold {threshold:g}"
    if conflict:
        reason += "; the output commits to several answers"
    return ScoreResult.of(best >= threshold, output[slice(*span)], span, reason, conflict, best)
