"""Which routers differ, and how surely: paired differences with corrected p-values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluate.bootstrap import interval, p_value
from pipelines.evaluate.significance import holm, mcnemar

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Comparison:
    """First minus second; `p_adjusted` is Holm-corrected over all pairs of its metric.

    For `mcnemar[…]` the difference is in the share of questions right, the
    p-value exact, and low and high are null.
    """

    metric: str
    split: str
    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    p: float
    p_adjusted: float
    significant: bool


def compare(
    metric: str,
    split: str,
    entrants: Mapping[str, tuple[float, Floats]],
    *,
    alpha: float = 0.05,
) -> list[Comparison]:
    """All pairs of entrants: name → (value, paired replicates); null values are left out."""
    names = sorted(name for name, (value, _) in entrants.items() if not np.isnan(value))
    pairs = list(combinations(names, 2))
    differences = [entrants[a][1] - entrants[b][1] for a, b in pairs]
    values = [entrants[a][0] - entrants[b][0] for a, b in pairs]
    p = [p_value(d) for d in differences]
    out = []
    for k, adjusted in enumerate(holm(p) if pairs else []):
        low, high = interval(differences[k])
        out.append(
            Comparison(
                metric,
                split,
                *pairs[k],
                values[k],
                low,
                high,
                p[k],
                adjusted,
                bool(adjusted < alpha),
            )
        )
    return out


def compare_matched(
    metric: str, split: str, scores: Mapping[str, Floats], *, alpha: float = 0.05
) -> list[Comparison]:
    """Exact McNemar tests between all pairs of routers held to the same budget."""
    pairs = list(combinations(sorted(scores), 2))
    tests = [mcnemar(scores[a], scores[b]) for a, b in pairs]
    adjusted = holm([test.p for test in tests]) if pairs else []
    return [
        Comparison(
            metric,
            split,
            a,
            b,
            float(np.nanmean(scores[a] - scores[b])),
            None,
            None,
            test.p,
            corrected,
            bool(corrected < alpha),
        )
        for (a, b), test, corrected in zip(pairs, tests, adjusted, strict=True)
    ]


@dataclass(frozen=True)
class Rank:
    """A router's place: the range of places that significant differences leave open."""

    router: str
    value: float
    best_place: int
    worst_place: int


def ranking(
    values: Mapping[str, float], comparisons: Sequence[Comparison], metric: str
) -> list[Rank]:
    """Routers by value; places are fixed only by significant differences.

    `best_place` is one more than the number of routers significantly better,
    `worst_place` the number of routers minus those significantly worse.
    """
    better: dict[str, int] = dict.fromkeys(values, 0)
    worse: dict[str, int] = dict.fromkeys(values, 0)
    for row in comparisons:
        if row.metric == metric and row.significant and {row.first, row.second} <= set(values):
            ahead, behind = (
                (row.first, row.second) if row.difference > 0 else (row.second, row.first)
            )
            better[behind] += 1
            worse[ahead] += 1
    order = sorted(values, key=lambda name: (-values[name], name))
    return [Rank(n, values[n], better[n] + 1, len(values) - worse[n]) for n in order]
