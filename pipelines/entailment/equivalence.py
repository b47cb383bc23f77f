"""Answer equivalence through a scorer: for tasks whose answers are short.

A scorer that accepts the one answer with the other as its reference says that
the two are the same answer. Formats are the scorer's business: `1/2` and
`0.50` are one answer to a numeric question.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from pipelines.meaning import Pair


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Entailment by `equivalent(pair)`: does `hypothesis` pass with `premise` as reference?

    Attributes:
        equivalent: None where the query's scorer cannot tell.
        symmetric: Leave False for scorers that read reference and answer
            differently; the pair is then asked in both directions.
    """

    equivalent: Callable[[Pair], bool | None]
    name: str = "equivalence"
    symmetric: bool = False
    reads: Literal["answer", "text"] = "answer"

    def key(self, pair: Pair) -> Hashable:
        # The wording of the question decides nothing, its scorer and choices do.
        return pair.scorer, pair.choices, pair.premise, pair.hypothesis

    def entails(self, pairs: Sequence[Pair]) -> list[bool | None]:
        return [self.equivalent(pair) for pair in pairs]
