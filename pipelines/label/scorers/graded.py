"""What the graded scorers share: best reference, threshold, span, reason."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from routeyard.pipelines.label.scorers.reading import short_answer, whole_answer
from routeyard.pipelines.label.scorers.scorer import Scorer, ScoreResult, ScoringInput
from routeyard.pipelines.label.scorers.words import all_tokens, tokens

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


# `f1`: SQuAD's token F1, the best of several references (Rajpurkar et al. 2016, §6.1).


def token_f1(answer: Sequence[str], reference: Sequence[str]) -> float:
    """2PR/(P+R) over the bag of words; two empty bags agree, one empty bag scores 0."""
    if not answer or not reference:
        return float(not answer and not reference)
    common = sum((Counter(answer) & Counter(reference)).values())
    return 2 * common / (len(answer) + len(reference))


F1_SCORER = replace(
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


# `rouge_l`: F-measure of the longest common subsequence (Lin 2004, β = 1).


def longest_common(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence.

    Bit-parallel (Hyyrö 2004): one machine operation per word of `b` and 64
    words of `a`, so outputs of 10,000 words take milliseconds.
    """
    places: dict[str, int] = {}
    for index, word in enumerate(a):
        places[word] = places.get(word, 0) | 1 << index
    full = (1 << len(a)) - 1
    row = full
    for word in b:
        match = row & places.get(word, 0)
        row = ((row + match) | (row - match)) & full
    return len(a) - row.bit_count()


def rouge_l(answer: Sequence[str], reference: Sequence[str]) -> float:
    """2·LCS/(|answer| + |reference|), which is F1 of LCS precision and recall."""
    if not answer or not reference:
        return 0.0
    return 2 * longest_common(answer, reference) / (len(answer) + len(reference))


#: The threshold is recorded with every verdict; a recipe's policy may set another per task.
ROUGE_L_SCORER = graded("rouge_l", "8", "ROUGE-L", rouge_l, threshold=0.3)


# `given`: carries over the score that a source already holds (RouterBench, BARTScore, …).
#
# `read` takes the score as text, so that one call serves JSONL files and columns
# alike; scores outside [0, 1] must be mapped by the reader of the source, which
# knows their scale.

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


GIVEN_SCORER = Scorer("given", "1", read, threshold=THRESHOLD, needs_reference=False)
