"""Answer equivalence through a scorer: for tasks whose answers are short.

A scorer that accepts the one answer with the other as its reference says that
the two are the same answer. Formats are the scorer's business: `1/2` and
`0.50` are one answer to a numeric question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from pipelines.meaning import Pair

# Plain numerals; more decimals than five are left to the scorer, which may round.
_NUMERAL = re.compile(r"(-?)(\d{1,30}|[1-9]\d{0,2}(?:,\d{3}){1,9})(\.\d{1,5})?", re.ASCII)
_LETTER = re.compile(r"[A-Z]")

#: Scorers that compare values, whichever of the two is the reference: one question
#: settles both directions. (Percent signs are the exception: they are forgiven in one.)
SYMMETRIC = frozenset({"numeric", "mcq"})


def canonical(scorer: str, answer: str) -> Hashable | None:
    """What the scorer would compare, where that is plain: a numeral's value, an option's letter.

    Two plain numerals are one answer to `numeric` and `math` exactly when their
    values are equal; everything else (fractions, units, LaTeX) is asked.
    """
    if scorer == "mcq":
        return answer if _LETTER.fullmatch(answer) else None
    if scorer not in ("numeric", "math"):
        return None
    if scorer == "numeric":
        answer = answer.removeprefix("$")
    found = _NUMERAL.fullmatch(answer)
    if found is None:
        return None
    sign, whole, decimals = found.groups()
    return Decimal(f"{sign}{whole.replace(',', '')}{decimals or ''}")


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
        return canonical(scorer, answer)

    def key(self, pair: Pair) -> Hashable:
        # The wording of the question decides nothing, its scorer and choices do.
        first, second = pair.premise, pair.hypothesis
        if second < first and pair.scorer in SYMMETRIC and "%" not in first + second:
            first, second = second, first
        return pair.scorer, pair.choices, first, second

    def entails(self, pairs: Sequence[Pair]) -> list[bool | None]:
        return [self.equivalent(pair) for pair in pairs]
