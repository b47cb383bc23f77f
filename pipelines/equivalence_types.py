"""Whether two answers mean the same: what clustering asks, and who may answer.

Shared by the curation rule that clusters answers and by the backends that
decide (a cross-encoder, a judge, our own scorers), which are in different packages.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal, NamedTuple, Protocol


class Pair(NamedTuple):
    """Does `premise` entail `hypothesis`, as answers to `question`?

    `scorer` and `choices` are the query's own; only answer equivalence reads them.
    """

    question: str
    premise: str
    hypothesis: str
    scorer: str = ""
    choices: tuple[str, ...] = ()


class Entailment(Protocol):
    """Decides entailment for a batch of pairs.

    Attributes:
        name: Written to the `backend` column of `entropies`.
        reads: `answer` compares extracted answers, `text` whole responses.
        symmetric: One direction settles both, so that it is asked once.
    """

    @property
    def name(self) -> str: ...

    @property
    def reads(self) -> Literal["answer", "text"]: ...

    @property
    def symmetric(self) -> bool: ...

    def canonical(self, scorer: str, answer: str) -> Hashable | None:
        """A form that decides without asking: two answers that have one are equal iff it is.

        None for an answer (or a backend) without such a form.
        """
        ...

    def key(self, pair: Pair) -> Hashable:
        """What the decision depends on; pairs with one key are asked once."""
        ...

    def entails(self, pairs: Sequence[Pair]) -> Sequence[bool | None]:
        """One decision per pair; None when the backend could not answer (an outage)."""
        ...
