"""What a scorer is given and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["correct", "incorrect", "abstain", "error"]


@dataclass(frozen=True, slots=True)
class Asked:
    """The question as a scorer sees it."""

    question: str
    references: tuple[str, ...]
    choices: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    #: Settings of the run (never filled from data), such as `run_code_without_isolation`.
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """One scorer's reading of one output.

    Attributes:
        outcome: `abstain` when nothing could be extracted; never a guess.
        score: In [0, 1]; None for `abstain` and `error`.
        extracted: The answer as it stands in the output.
        span: Character span of `extracted` in the output, end exclusive.
        conflict: The output commits to several different answers.
    """

    outcome: Outcome
    score: float | None = None
    extracted: str | None = None
    span: tuple[int, int] | None = None
    reason: str = ""
    conflict: bool = False


@dataclass(frozen=True, slots=True)
class Scorer:
    """A rule scorer: `read(asked, output)` is pure and takes linear time.

    `threshold` is the score at or above which a graded scorer says `correct`;
    None for scorers that are right or wrong. `needs_reference` is False only
    for scorers that carry a source's own score over.
    """

    name: str
    version: str
    read: Callable[[Asked, str], Reading]
    threshold: float | None = None
    needs_reference: bool = True
