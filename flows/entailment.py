"""The entailment backend that a recipe's `preference` rule names.

Curation and scorers live in rooms that do not know each other; here they meet.
"""

from __future__ import annotations

from functools import cache

from pipelines.entailment.equivalence import Equivalence
from pipelines.meaning import Pair


def scorer_equivalence() -> Equivalence:
    """Answer equivalence through the rule scorer that each query names.

    A graded or a reference-free scorer cannot say that two answers are one;
    the pair is then undecided, and its query makes no preference pair.
    """
    from pipelines.label import SCORERS
    from pipelines.label.reading import Asked

    scorer_of = cache(SCORERS.get)

    def equivalent(pair: Pair) -> bool | None:
        scorer = scorer_of(pair.scorer)
        if scorer.threshold is not None or not scorer.needs_reference or pair.scorer == "code":
            return None
        asked = Asked(pair.question, (pair.premise,), pair.choices)
        reading = scorer.read(asked, stated(pair.scorer, pair.hypothesis))
        # `error`: the premise is not an answer of that scorer's form; it equals nothing.
        return bool(reading.outcome == "correct")

    return Equivalence(equivalent)


def stated(scorer: str, answer: str) -> str:
    """An extracted answer in the form in which its scorer asks for answers."""
    return f"\\boxed{{{answer}}}" if scorer == "math" else f"Answer: {answer}"
