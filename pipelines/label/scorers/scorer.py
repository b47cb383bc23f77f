"""What a scorer is, what it is given and what it gives back."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from routeyard.pipelines.label.scorers.reading import named, retracts

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#: The mark before the text of an option: `A) `, `(b)`, `1. `.
MARK = re.compile(r"\s*\(?([A-Za-z]|\d{1,2})(?:[)\]]\s*|[.:]\s+)(?=\S)")
Outcome = Literal["correct", "incorrect", "abstain", "error"]


@lru_cache(maxsize=65536)
def without_marks(choices: tuple[str, ...]) -> tuple[str, ...]:
    """Options without the marks of their places (`A) Paris`, `B) Lyon`), where each has its own."""
    marks = [mark for text in choices if (mark := MARK.match(text))]
    own = [mark[1].upper() for mark in marks]
    places = [*LETTERS[: len(choices)]], [str(n + 1) for n in range(len(choices))]
    if len(choices) < 2 or own not in places:
        return choices
    return tuple(text[mark.end() :] for mark, text in zip(marks, choices, strict=True))


@dataclass(frozen=True, slots=True)
class ScoringInput:
    """The question as a scorer sees it."""

    question: str
    #: Accepted answers: any one of them makes an answer right (of `code`, tests that all have to
    #: pass). A set that has to be complete is one reference.
    references: tuple[str, ...]
    choices: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    #: Settings of the run (never filled from data), such as `run_code_without_isolation`.
    options: Mapping[str, object] = field(default_factory=dict)
    #: The response reached its token limit: what it does not mark, it did not get to say.
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class ScoreResult:
    """One scorer's reading of one output.

    Attributes:
        outcome: `abstain` when nothing could be extracted; never a guess.
        score: In [0, 1]; None for `abstain` and `error`.
        extracted: The answer as written in the output.
        span: Character span of `extracted` in the output, end exclusive.
        conflict: The output commits to several different answers.
    """

    outcome: Outcome
    score: float | None = None
    extracted: str | None = None
    span: tuple[int, int] | None = None
    reason: str = ""
    conflict: bool = False

    @classmethod
    def of(
        cls,
        right: bool,
        extracted: str | None,
        span: tuple[int, int] | None,
        reason: str,
        conflict: bool = False,
        score: float | None = None,
    ) -> ScoreResult:
        """`correct` or `incorrect`; the score is 1 or 0 where none is given."""
        outcome: Outcome = "correct" if right else "incorrect"
        score = float(right) if score is None else score
        return cls(outcome, score, extracted, span, reason, conflict)


#: Beginnings of the names of verifiers, judges and people, whose verdicts no rule can repeat.
FAMILIES = ("xverify:", "judge:", "human:")


@dataclass(frozen=True, slots=True)
class Scorer:
    """A rule scorer, and all that other stages need to know of it.

    Attributes:
        read: `read(asked, output)`: pure, and in linear time.
        version: Raised whenever a reading can change.
        threshold: Score at or above which a graded scorer says `correct`, and the mean of
            several samples is; None where the outcome does not follow from the score (right
            or wrong, or a grade that is only told beside it): then outcomes are counted.
        instruction: Instruction to the model about the form of its answer; ingest
            appends it to the prompt and `read` looks for that form first. Another
            wording makes other prompts and so another benchmark.
        needs_reference: False only for scorers that carry a source's own score over.
        lettered: The reference is the letter of one of the question's options.
        escalate_on: When a policy goes on to the next step, unless the recipe says.
        symmetric: Compares values, whichever of two answers is the reference.
        equates: May decide whether two answers are the same (graded scorers never).
        canonical: What `read` would compare, where an answer is plain; None elsewhere.
            Answers with equal canonical forms are one answer to this scorer.
        states: An extracted answer in the form that the instruction asks for.
    """

    name: str
    version: str
    read: Callable[[ScoringInput, str], ScoreResult]
    threshold: float | None = None
    instruction: str = ""
    needs_reference: bool = True
    lettered: bool = False
    escalate_on: Literal["abstain", "not_correct"] = "abstain"
    symmetric: bool = False
    equates: bool = True
    canonical: Callable[[str], Hashable | None] | None = None
    states: str = "Answer: {}"

    def score(self, asked: ScoringInput, output: str) -> ScoreResult:
        """What `read` says of an output, or of the envelope in it that the source names.

        `metadata["answer_in"]` is the tag or JSON key that the benchmark's own rules read.
        """
        name = asked.metadata.get("answer_in")
        if not isinstance(name, str):
            result = self.read(asked, output)
            if self.decides_equality and result.span and retracts(output, result.span[0]):
                return ScoreResult("abstain", reason="the output takes its answer back")
            return result
        span = named(output, name)
        if span is None:
            return ScoreResult("abstain", reason=f"no {name!r} in the output, as the source asks")
        start, stop = span
        read = self.read(asked, output[start:stop])
        return (
            replace(read, span=(read.span[0] + start, read.span[1] + start)) if read.span else read
        )

    @property
    def decides_equality(self) -> bool:
        """Whether it can say that two answers are one."""
        return self.equates and self.needs_reference and self.threshold is None
