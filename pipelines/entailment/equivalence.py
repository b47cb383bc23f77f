"""Answer equivalence through a scorer: for tasks whose answers are short.

A scorer that accepts the one answer with the other as its reference says that
the two are the same answer. Formats are the scorer's business: `1/2` and
`0.50` are one answer to a numeric question.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from routeyard.pipelines.equivalence_types import Pair
from routeyard.pipelines.scorers import SCORERS
from routeyard.pipelines.scorers.scorer import ScoringInput


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

    def canonical(self, scorer: str, answer: str) -> Hashable | None:
        """What the scorer would compare, where that is plain; the rest is asked."""
        form = SCORERS.get(scorer).canonical if scorer in SCORERS.targets else None
        return None if form is None else form(answer)

    def key(self, pair: Pair) -> Hashable:
        # The wording of the question decides nothing, its scorer and choices do.
        first, second = pair.premise, pair.hypothesis
        # One question settles both directions, but for percent signs, forgiven in one only.
        symmetric = pair.scorer in SCORERS.targets and SCORERS.get(pair.scorer).symmetric
        if second < first and symmetric and "%" not in first + second:
            first, second = second, first
        return pair.scorer, pair.choices, first, second

    def entails(self, pairs: Sequence[Pair]) -> list[bool | None]:
        return [self.equivalent(pair) for pair in pairs]


def scorer_equivalence() -> Equivalence:
    """Answer equivalence through the rule scorer that each query names.

    A graded or a reference-free scorer cannot say that two answers are one;
    the pair is then undecided, and its query makes no preference pair.
    """
    scorer_of = cache(SCORERS.get)

    def equivalent(pair: Pair) -> bool | None:
        scorer = scorer_of(pair.scorer)
        if not scorer.decides_equality:
            return None
        asked = ScoringInput(pair.question, (pair.premise,), pair.choices)
        reading = scorer.read(asked, scorer.states.format(pair.hypothesis))
        # `error`: the premise is not an answer of that scorer's form; it equals nothing.
        return bool(reading.outcome == "correct")

    return Equivalence(equivalent)
