"""What the graded scorers share: best reference, threshold, span, reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from routeyard.pipelines.scorers.comparison.words import all_tokens, tokens
from routeyard.pipelines.scorers.extraction.short_answer import short_answer, whole_answer
from routeyard.pipelines.scorers.scorer import Scorer, ScoreResult, ScoringInput

#: Instruction of scorers that compare the whole text.
BARE_TEXT = "Reply with the requested text only, without an introduction or closing remarks."


def graded(
    name: str,
    version: str,
    label: str,
    score: Callable[[Sequence[str], Sequence[str]], float],
    *,
    threshold: float | None = None,
    instruction: str = "",
) -> Scorer:
    """Scorer of the best score over the references; `correct` at or above the threshold.

    Args:
        label: What the score is called.
        score: (answer tokens, reference tokens) → score in [0, 1].
        threshold: None where `correct` is the same words, and the score told beside it.
        instruction: Empty where the whole output is compared (summaries, translations),
            not its short answer.
    """
    words = tokens if instruction else all_tokens

    def read(asked: ScoringInput, output: str) -> ScoreResult:
        wanted = [reference for one in asked.references if (reference := words(one))]
        if not wanted:
            return ScoreResult("error", reason="no reference has any word left after normalisation")
        short = bool(instruction)
        found = short_answer(output, truncated=asked.truncated) if short else whole_answer(output)
        if found is None:
            return ScoreResult("abstain", reason="no answer to compare")
        answer, span, conflict = found
        said = words(answer)
        best = max(score(said, reference) for reference in wanted)
        right = said in wanted if threshold is None else best >= threshold
        rule = f"exact match {right}" if threshold is None else f"threshold {threshold:g}"
        reason = f"{label} {best:.3f}, {rule}"
        if conflict:
            reason += "; the output commits to several answers"
        return ScoreResult.of(right, output[slice(*span)], span, reason, conflict, best)

    return Scorer(name, version, read, threshold, instruction or BARE_TEXT)
