"""`em`: exact match after SQuAD normalisation, against any of several references.

Folded are: case, the articles a, an and the, punctuation (but not operators and
decimal points), quotes, markdown and LaTeX text macros around the answer,
thousands separators, runs of space, and Unicode's compatible forms. Where any of
these carries meaning (program output, data), `literal` is the scorer.

An answer that is not equal may still be right in other words ("Wilhelm Röntgen" for "Wilhelm
Conrad Röntgen"). `em` calls it incorrect where it is short or marked and is another answer, as
`contains` reads it, or the same words in another order or with other signs; else it abstains.
`em_strict` calls every unequal answer incorrect, as papers that report exact match do.

An empty reference is an error, unless the source means it
(`metadata["empty_reference"]`: the right answer is to answer nothing).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from routeyard.pipelines.label.scorers.contains import compared
from routeyard.pipelines.label.scorers.graded import normalise, tokens
from routeyard.pipelines.label.scorers.reading import short_answer
from routeyard.pipelines.label.scorers.scorer import Scorer, ScoreResult, ScoringInput

#: Words up to which a whole output is a short answer.
SHORT = 8


@lru_cache(maxsize=65536)
def _normal(reference: str) -> str:
    return normalise(reference)


def read_strictly(asked: ScoringInput, output: str) -> ScoreResult:
    """Correct when the short answer equals a reference, both normalised; else incorrect."""
    known = [normal for reference in asked.references if (normal := _normal(reference))]
    empty = asked.metadata.get("empty_reference") is True and "" in asked.references
    if empty and not output.strip():
        return ScoreResult("correct", 1.0, "", (0, 0), "nothing, which is the reference")
    if not known and not empty:
        return ScoreResult("error", reason="no reference has any word left after normalisation")
    result = short_answer(output, truncated=asked.truncated)
    if result is None:
        return ScoreResult("abstain", reason="no short answer")
    answer, span, conflict = result
    normal = normalise(answer)
    right = normal in known
    reason = f"{normal[:120]!r} {'equals' if right else 'is none of'} the references"
    if conflict:
        reason += "; the output commits to several answers"
    return ScoreResult.of(right, output[slice(*span)], span, reason, conflict)


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """`read_strictly`, but `abstain` where an unequal answer may be right in other words."""
    strict = read_strictly(asked, output)
    if strict.outcome != "incorrect" or strict.span is None:
        return strict
    extracted = strict.extracted or ""
    words = len(extracted.split())
    if words > SHORT and words == len(output.split()):
        reason = f"{words} words without a marked short answer"
    elif (
        _other_signs(asked.references, extracted)
        or compared(asked, extracted, strict.span, output)[0] == "incorrect"
    ):
        return strict
    else:
        reason = f"{strict.reason}, but may be one in other words"
    return replace(strict, outcome="abstain", score=None, reason=reason)


def _other_signs(references: Sequence[str], answer: str) -> bool:
    """Whether an answer has the words of a reference, in another order or with other signs."""
    said = _letters(answer)
    return any(said == _letters(reference) for reference in references)


def _letters(text: str) -> list[str]:
    return sorted("".join(filter(str.isalnum, token)) for token in tokens(text))


SCORER = Scorer(
    "em",
    "15",
    read,
    instruction='End with one line of the form "Answer: ...", holding the answer and nothing else.',
    escalate_on="not_correct",
)
STRICT = replace(SCORER, name="em_strict", version="10", read=read_strictly)
