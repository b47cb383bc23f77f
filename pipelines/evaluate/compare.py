"""Which routers differ, and how surely: paired differences with corrected p-values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.evaluate.significance import McNemar, holm, mcnemar, mcnemar_one_sided
from routeyard.pipelines.metrics.bootstrap import interval, p_value
from routeyard.pipelines.metrics.selection import at_choice

#: A corrected p-value below it is significant.
ALPHA = 0.05


@dataclass(frozen=True)
class Comparison:
    """First minus second; `p_adjusted` is Holm-corrected over all pairs of its metric.

    For `mcnemar[…]` the difference is in the share of questions right, the
    p-value exact, low and high are null, and n10 and n01 count the questions
    only the first and only the second gets right.
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
    n10: int | None = None
    n01: int | None = None


def compare(
    metric: str,
    split: str,
    values: Mapping[str, tuple[float, Floats]],
    *,
    on: Mapping[str, Mapping[str, tuple[float, Floats]]] | None = None,
) -> list[Comparison]:
    """All pairs of routers: name → (value, paired replicates); null values are left out.

    Args:
        on: name of a router that is over a part of the questions → the others over that part.
    """
    names = sorted(name for name, (value, _) in values.items() if not np.isnan(value))
    pairs = list(combinations(names, 2))
    parts = on or {}
    met = [
        (parts.get(b, values).get(a, values[a]), parts.get(a, values).get(b, values[b]))
        for a, b in pairs
    ]
    differences = [first[1] - second[1] for first, second in met]
    gains = [first[0] - second[0] for first, second in met]
    p = [p_value(d) for d in differences]
    out = []
    for k, adjusted in enumerate(holm(p) if pairs else []):
        low, high = interval(differences[k])
        sure = bool(adjusted < ALPHA)
        one, other = pairs[k]
        out.append(Comparison(metric, split, one, other, gains[k], low, high, p[k], adjusted, sure))
    return out


def compare_matched(metric: str, split: str, scores: Mapping[str, Floats]) -> list[Comparison]:
    """Exact McNemar tests between all pairs of routers held to the same budget."""
    pairs = list(combinations(sorted(scores), 2))
    tests = [mcnemar(scores[a], scores[b]) for a, b in pairs]
    differences = [float(np.nanmean(scores[a] - scores[b])) for a, b in pairs]
    return _tested(metric, split, pairs, list(zip(tests, differences, strict=True)))


def _tested(
    metric: str,
    split: str,
    pairs: Sequence[tuple[str, str]],
    found: Sequence[tuple[McNemar, float]],
) -> list[Comparison]:
    """Comparisons of pairs by their tests and differences, corrected by Holm over all of them."""
    adjusted = holm([test.p for test, _ in found]) if found else []
    return [
        Comparison(
            metric, split, a, b, difference, None, None, test.p, corrected,
            bool(corrected < ALPHA), test.first_only, test.second_only,
        )
        for (a, b), (test, difference), corrected in zip(pairs, found, adjusted, strict=True)
    ]  # fmt: skip


def compare_published(
    metric: str,
    split: str,
    grids: Mapping[str, tuple[Floats, NDArray[np.int16]]],
    correct: Floats,
) -> list[Comparison]:
    """One-sided exact McNemar of every router over every other, at the median of their cost grids.

    CSCR, appendix D.6 and Table 16: c* is the median of both routers' mean
    costs along their sweeps together; each takes the setting whose mean cost is
    nearest to it (the cheaper of two as near). Both directions are tested, and
    Holm corrects over all of them.

    Args:
        grids: router → (k,) mean costs and (n, k) choices of its sweep.
        correct: (n, m) decisions.
    """
    names = [(a, b) for a in sorted(grids) for b in sorted(grids) if a != b]
    found = []
    for a, b in names:
        budget = float(np.median(np.concatenate([grids[a][0], grids[b][0]])))
        right = [
            at_choice(correct, choices[:, int(np.argmin(np.abs(costs - budget)))].astype(np.int64))
            for costs, choices in (grids[a], grids[b])
        ]
        found.append((mcnemar_one_sided(*right), float(np.nanmean(right[0] - right[1]))))
    return _tested(metric, split, names, found)


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
