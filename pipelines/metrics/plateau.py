"""Why routers stop short of the oracle: hard queries, agreement, exchanged wins, collapse.

Where a metric needs right or wrong it takes `correct`, the decisions
(`Core.decided`: 1, 0 and NaN for missing), never its own threshold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from routeyard.pipelines.arrays import Bools, Floats, Ints
from routeyard.pipelines.matrix.row_blocks import by_rows
from routeyard.pipelines.metrics.selection import Choice, at_choice


def right(correct: Floats) -> Bools:
    """(n, m) whether the answer is right; a missing label is not right."""
    return np.asarray(by_rows(lambda part: np.nan_to_num(part) > 0, correct))


def solvable(correct: Floats) -> Bools:
    """(n,) queries that at least one model gets right."""
    return np.asarray(by_rows(lambda part: right(part).any(axis=1), correct))


def hard_subset(correct: Floats, best: int) -> Bools:
    """(n,) solvable queries on which only a few models, and not the global best, are right.

    Hard means that exactly one model is right, or that 1 < n ≤ max(8, ⌈K/2⌉)
    are right and the best single model `best` is wrong. Where the best model
    has no label it is not known to be wrong, and only the first case counts.

    >>> y = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 0, 0.0]])
    >>> hard_subset(y, 0)
    array([ True,  True, False, False])
    """

    def work(part: Floats) -> Bools:
        n_right = right(part).sum(axis=1)
        few = (n_right > 1) & (n_right <= max(8, math.ceil(part.shape[1] / 2)))
        best_wrong = ~np.isnan(part[:, best]) & ~right(part)[:, best]
        return np.asarray((n_right == 1) | (few & best_wrong))

    return np.asarray(by_rows(work, correct))


@dataclass(frozen=True)
class OracleGap:
    """How far a router stays below the per-query oracle, and where.

    Attributes:
        hard: mean gap on the hard subset; None when it is empty.
        easy: mean gap on the other solvable queries; None without any.
        share_explained: part of the total gap that is on hard queries; None
            when there is no gap.
    """

    hard: float | None
    easy: float | None
    share_explained: float | None


def oracle_gap(
    labels: Floats, choice: Choice, best: int, correct: Floats | None = None
) -> OracleGap:
    """Gap to the oracle on hard and easy solvable queries.

    Args:
        correct: decisions; by default `labels`, which are then 0 and 1.

    >>> y = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0], [0, 0, 0.0]])
    >>> oracle_gap(y, np.array([0, 0, 0, 0]), 0)
    OracleGap(hard=0.5, easy=0.0, share_explained=1.0)
    """
    top = by_rows(lambda y: np.where(np.isnan(y), -np.inf, y).max(axis=1), labels)
    gap = top - at_choice(labels, choice)
    decided = labels if correct is None else correct
    hard, can = hard_subset(decided, best), solvable(decided)
    easy = can & ~hard
    total = float(gap[can].sum())
    return OracleGap(
        hard=float(gap[hard].mean()) if hard.any() else None,
        easy=float(gap[easy].mean()) if easy.any() else None,
        share_explained=float(gap[hard].sum()) / total if total > 0 else None,
    )


@dataclass(frozen=True)
class Exchange:
    """Two routers on the same queries.

    Attributes:
        disagreement: share of queries for which they choose different models.
        won: share that only the first gets right.
        lost: share that only the second gets right.
        signed: won − lost, the difference in accuracy.
        unsigned: won + lost, how much changes hands.
        given_disagreement: |ΔY|, the share that changes hands among the
            queries for which they choose different models (the plateau paper,
            section 5.2 and Table 4, "conditioned on disagreement"); None when
            they never disagree.
        signed_given_disagreement: |ΔY signed|, the same of `signed`, absolute.
    """

    disagreement: float
    won: float
    lost: float
    signed: float
    unsigned: float
    given_disagreement: float | None = None
    signed_given_disagreement: float | None = None


def exchange(correct: Floats, first: Choice, second: Choice) -> Exchange:
    """Pairwise disagreement and exchanged wins.

    >>> y = np.array([[1, 0], [0, 1], [1, 1], [1, 0.0]])
    >>> found = exchange(y, np.array([0, 0, 0, 0]), np.array([0, 1, 1, 1]))
    >>> found.disagreement, found.won, found.lost, found.signed, found.unsigned
    (0.75, 0.25, 0.25, 0.0, 0.5)
    >>> round(found.given_disagreement, 6), found.signed_given_disagreement
    (0.666667, 0.0)
    """
    a, b = right(at_choice(correct, first)), right(at_choice(correct, second))
    apart = first != second
    gain, loss, n_apart = int(np.sum(a & ~b)), int(np.sum(b & ~a)), int(np.sum(apart))
    won, lost = gain / max(len(a), 1), loss / max(len(a), 1)
    return Exchange(
        float(np.mean(apart)),
        won,
        lost,
        won - lost,
        won + lost,
        (gain + loss) / n_apart if n_apart else None,
        abs(gain - loss) / n_apart if n_apart else None,
    )


def selection_profile(choice: Choice, n_models: int) -> Floats:
    """(m,) share of queries sent to every model."""
    return np.bincount(choice, minlength=n_models) / max(len(choice), 1)


def selection_entropy(profile: Floats) -> float:
    """Shannon entropy of a selection profile divided by log m: 0 is collapse, 1 uniform.

    >>> selection_entropy(np.array([0.5, 0.5, 0.0, 0.0]))
    0.5
    """
    if len(profile) < 2:
        return 0.0
    used = profile[profile > 0]
    return float(max(0.0, -(used * np.log(used)).sum() / math.log(len(profile))))


#: Routing outcomes, in the order of `outcomes`.
OUTCOMES = ("optimal", "too_cheap", "too_expensive", "none_correct")


def outcomes(correct: Floats, cost: Floats, choice: Choice, *, as_published: bool = False) -> Ints:
    """(n,) position in `OUTCOMES` of what choosing did on each query.

    * none_correct: no model is right.
    * optimal: the chosen model is right and no cheaper one is.
    * too_cheap: it is wrong, and the cheapest right model costs more.
    * too_expensive: a cheaper model is right, whether the chosen one is or not.

    As published (CSCR, appendix D.5.2: "unnecessarily costly … though
    correct") a wrong choice is never too expensive: it is too cheap whenever
    some model is right.

    Args:
        cost: (n, m) cost of each answer, or (m,) of each model. Where the cost
            of an answer is unknown it cannot be the cheapest.

    >>> y = np.array([[1, 1], [1, 1], [0, 1], [1, 0], [0, 0.0]])
    >>> outcomes(y, np.array([1.0, 2.0]), np.array([0, 1, 0, 1, 0]))
    array([0, 2, 1, 2, 3])
    >>> outcomes(y, np.array([1.0, 2.0]), np.array([0, 1, 0, 1, 0]), as_published=True)
    array([0, 2, 1, 1, 3])
    """

    def work(part: Floats, price: Floats, chosen: Choice) -> Ints:
        price = np.where(np.isnan(price), np.inf, price)
        good = right(part)
        cheapest = np.where(good, price, np.inf).min(axis=1)
        paid, is_right = at_choice(price, chosen), at_choice(good.astype(np.float64), chosen) > 0
        out = np.where(cheapest < paid, 2, np.where(is_right, 0, 1))
        if as_published:
            out = np.where(is_right, out, 1)
        return np.where(good.any(axis=1), out, 3)

    return np.asarray(by_rows(work, correct, np.broadcast_to(cost, correct.shape), choice))
