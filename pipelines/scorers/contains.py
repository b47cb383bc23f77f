"""`contains`: whether an answer in free text names a reference, as whole words or as one value.

The answer is the marked one where there is one, else the whole output. It is `correct` where it
names a reference: the words in one run, without case, accents, articles, titles and plurals; all of
them near each other; a name without its middle names; a date or an amount of the same value. A
letter beside a word of the reference is named as well ("s-block", "hepatitis C"). It is
`incorrect` where it commits to something else of the reference's kind (another date, number or
name) and shares none of the reference's words. All else is `abstain`: a reference that is denied
("it is not Paris") or one of several ("Paris or Lyon"), a partial match, other words for a phrase.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from routeyard.pipelines.scorers.extraction.short_answer import short_answer
from routeyard.pipelines.scorers.open_answers.another import another_answer
from routeyard.pipelines.scorers.open_answers.doubts import doubt, wanted_of
from routeyard.pipelines.scorers.open_answers.named import bare, loosely, named
from routeyard.pipelines.scorers.open_answers.texts import Text, accepted, has_letters, text_of
from routeyard.pipelines.scorers.open_answers.words import VERDICTS, unglued
from routeyard.pipelines.scorers.scorer import Outcome, Scorer, ScoreResult, ScoringInput

#: Places of one reference that are looked at: an answer that is right names it early.
_PLACES = 8


def read(asked: ScoringInput, output: str) -> ScoreResult:
    """The reading of one output; `abstain` where it is neither the same nor another answer."""
    if not any(map(accepted, asked.references)):
        return ScoreResult("error", reason="every reference is empty")
    found = short_answer(output, truncated=asked.truncated)
    if found is None:
        return ScoreResult("abstain", reason="no answer to compare")
    written, span, conflict = found
    outcome, reason = compared(asked, written)
    said = output[slice(*span)]
    if outcome == "abstain":
        return ScoreResult("abstain", None, said, span, reason, conflict)
    return ScoreResult.of(outcome == "correct", said, span, reason, conflict)


def compared(asked: ScoringInput, written: str) -> tuple[Outcome, str]:
    """`correct`, `incorrect` or `abstain` for the answer as it is written, and why."""
    references = [one for reference in asked.references for one in accepted(reference)]
    answer = text_of(written)
    if any(bare(one) == bare(answer) != "" for one in references):
        return "correct", "the whole answer"
    if all(len(one.forms) == 1 and one.forms[0] in VERDICTS for one in references):
        return _yes_or_no(references, answer)
    doubts = ""
    known = [date for one in references for date, _, _ in one.dates]
    wanted = wanted_of(asked.question, references)
    for text in (answer, *_unglued(answer)):
        for reference in (one for one in references if has_letters(one, text)):
            places = named(reference, text, known) or loosely(reference, text, wanted.question)
            for start, end, how in islice(places, _PLACES):
                doubts = doubt(text, start, end, wanted)
                if not doubts:
                    return "correct", f"{how}: {reference.folded[:80]!r}"
    if doubts:
        return "abstain", doubts
    reason = another_answer(references, answer, wanted.question)
    return ("incorrect", reason) if reason else ("abstain", "neither the reference nor another")


def _yes_or_no(references: Sequence[Text], answer: Text) -> tuple[Outcome, str]:
    """Yes and no occur in any text: only the first word of an answer is one."""
    said = VERDICTS.get(answer.forms[0]) if answer.forms else None
    if said is None:
        return "abstain", "the answer does not begin with yes or no"
    right = said in {VERDICTS.get(one.forms[0]) for one in references}
    return "correct" if right else "incorrect", f"begins with {answer.forms[0]!r}"


def _unglued(answer: Text) -> Iterable[Text]:
    parted = unglued(answer.folded)
    return [text_of(parted)] if parted != answer.folded else []


SCORER = Scorer(
    "contains",
    "8",
    read,
    instruction="Answer in one short sentence.",
    escalate_on="not_correct",
)
