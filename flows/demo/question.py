"""One question of the bank, and how rows of generators become questions."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

Scorer = Literal["mcq", "numeric", "em"]

LETTERS = "ABCDEFGH"


@dataclass(frozen=True, slots=True)
class BankQuestion:
    """A question with its gold answer.

    Attributes:
        references: Accepted answers; the letter for `mcq`.
        twin_of: Id of the question this one repeats in other spelling, or None.
    """

    id: str
    task: str
    domain: str
    scorer: Scorer
    question: str
    references: tuple[str, ...]
    choices: tuple[str, ...] = ()
    twin_of: str | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """What a generator writes: the text, and answers (for `mcq` the right choice is first)."""

    text: str
    answers: tuple[str, ...]
    wrong: tuple[str, ...] = ()


def finish(draft: Draft, *, id: str, task: str, domain: str, random: Random) -> BankQuestion:
    """The question of a draft; choices are shuffled with `random`.

    A draft with wrong choices is multiple choice, one whose only answer is a
    number is numeric, the rest are matched as text.
    """
    if draft.wrong:
        choices = [draft.answers[0], *draft.wrong]
        random.shuffle(choices)
        letter = LETTERS[choices.index(draft.answers[0])]
        return BankQuestion(id, task, domain, "mcq", draft.text, (letter,), tuple(choices))
    scorer: Scorer = "numeric" if _is_number(draft.answers[0]) else "em"
    return BankQuestion(id, task, domain, scorer, draft.text, draft.answers)


def _is_number(text: str) -> bool:
    return text.removeprefix("-").replace(".", "", 1).isdecimal()
