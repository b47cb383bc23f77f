"""Selection rules: from scores and costs to choices, the same way for every router.

All take scores (n, m), which models are available for a query (n, m) - a model
without label or cost there cannot be judged, so it cannot be chosen - and `order`
(m,), the models as `arrays.ranked` gives them on the train questions: the
first of it wins a tie. Those that weigh cost take what a router can know
beforehand (m,), the mean over the train questions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.common.arrays import (
    Bools,
    Floats,
    Ints,
    allocate,
    blocks,
    by_rows,
    distinct,
    known,
    mean_costs,
    ranked,
    take_rows,
)

Choice = NDArray[np.int64]
Order = NDArray[np.int64]
#: (n, k) one choice per setting of a sweep: narrow, since there are many.
Choices = NDArray[np.int16]


def scaled(costs: Floats) -> Floats:
    """Min-max scaling to [0, 1]; all zeros when every cost is the same."""
    low, high = np.nanmin(costs), np.nanmax(costs)
    return np.zeros_like(costs) if high <= low else (costs - low) / (high - low)


def penalties(points: int = 100) -> Floats:
    """Weights of cost from 1 (cheapest model) down to 0 (cost does not matter).

    λ/(1−λ) runs geometrically from 1000 to 0.001, since useful trade-offs lie
    close together near both ends.
    """
    ratio = np.geomspace(1e3, 1e-3, points - 2)
    return np.concatenate([[1.0], ratio / (1 + ratio), [0.0]])


def best(scores: Floats, available: NDArray[np.bool_], order: Order) -> Choice:
    """(n,) model with the highest score among those available.

    >>> best(np.array([[0.5, 0.5, 0.4]]), np.ones((1, 3), bool), np.array([2, 1, 0]))
    array([1])
    """

    def work(score: Floats, can: NDArray[np.bool_]) -> Choice:
        return np.asarray(order[np.argmax(np.where(can, score, -np.inf)[:, order], axis=1)])

    return np.asarray(by_rows(work, scores, available))


def cost_penalised(
    scores: Floats, available: NDArray[np.bool_], cost: Floats, weights: Floats, order: Order
) -> Choices:
    """(n, k) argmax of (1−λ)·score − λ·ĉ for every λ in `weights`, ĉ min-max scaled.

    The sweep behind a deferral curve: Jitkrittum et al., Universal Model
    Routing (arXiv 2502.08773), the cost-adjusted rule argmin loss + λ·cost,
    here in the convex form so that λ = 1 is the cheapest model.

    >>> s, c, can = np.array([[0.9, 0.6]]), np.array([1.0, 0.0]), np.ones((1, 2), bool)
    >>> cost_penalised(s, can, c, np.array([1.0, 0.5, 0.1]), np.array([0, 1])).tolist()
    [[1, 1, 0]]
    """
    price = scaled(cost)[order]
    out = allocate((len(scores), len(weights)), np.int16)
    for rows in blocks(len(scores)):
        masked = np.where(available[rows], scores[rows], -np.inf)[:, order]
        value = np.empty_like(masked)
        for k, weight in enumerate(weights):
            if weight < 1:
                np.multiply(masked, 1 - weight, out=value)
                value -= weight * price
            else:
                value[:] = np.where(masked > -np.inf, -price, -np.inf)
            out[rows, k] = order[np.argmax(value, axis=1)]
    return out


def within_budget(
    scores: Floats, available: NDArray[np.bool_], cost: Floats, budgets: Floats, order: Order
) -> Choices:
    """(n, k) highest-scoring model among those whose mean cost is within each budget.

    Where no available model is, the cheapest available one is taken.

    >>> s, c, can = np.array([[0.9, 0.6]]), np.array([5.0, 1.0]), np.ones((1, 2), bool)
    >>> within_budget(s, can, c, np.array([0.5, 1.0, 5.0]), np.array([0, 1])).tolist()
    [[1, 1, 0]]
    """
    price = cost[order]
    affordable = np.searchsorted(np.sort(price), budgets, side="right")
    by_cost = np.argsort(price, kind="stable")
    out = allocate((len(scores), len(budgets)), np.int16)
    for rows in blocks(len(scores)):
        masked = np.where(available[rows], scores[rows], -np.inf)[:, order]
        cheapest = by_cost[np.argmax(masked[:, by_cost] > -np.inf, axis=1)]
        seen: dict[int, Choice] = {0: cheapest}
        for k, first in enumerate(affordable.tolist()):
            if first not in seen:
                within = np.sort(by_cost[:first])
                some = masked[:, within]
                none = np.all(some == -np.inf, axis=1)
                seen[first] = np.where(none, cheapest, within[np.argmax(some, axis=1)])
            out[rows, k] = order[seen[first]]
    return out


def at_choice(values: Floats, choice: Choice | Choices) -> Floats:
    """values (n, m) at choice (n,) or (n, k), in the shape of `choice`."""
    if choice.ndim == 1:
        return np.asarray(values[np.arange(len(values)), choice])
    return np.asarray(
        by_rows(lambda some, who: np.take_along_axis(some, who, axis=1), values, choice)
    )


# What a router is compared with: oracles, single models and random mixes.
#
# Each gives, for one resample or all of them, a mean accuracy; the per-query
# ones are plain columns for `Draws.means`.


def best_single(labels: Floats, cost: Floats | None = None) -> int:
    """The most accurate single model on the same questions; ties go to the cheaper.

    >>> best_single(np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([3.0, 2.0]))
    1
    >>> best_single(np.array([[1.0, 1.0], [0.0, np.nan], [1.0, np.nan], [1.0, 0.0]]))
    0
    """
    return int(ranked(labels, cost)[0])


def alone(available: NDArray[np.bool_], order: NDArray[np.int64]) -> Choice:
    """(n, m) who answers when only model k is asked: k, or where it cannot be judged the
    first in `order` that can.

    A router that always chooses k is measured the same way, so single models,
    routers and oracles are compared on the same questions.

    >>> alone(np.array([[True, True], [False, True]]), np.array([0, 1])).tolist()
    [[0, 1], [1, 1]]
    """

    def work(can: NDArray[np.bool_]) -> Choice:
        instead = order[np.argmax(can[:, order], axis=1)]
        return np.where(can, np.arange(can.shape[1]), instead[:, None])

    return np.asarray(by_rows(work, available))


def query_oracle(labels: Floats, cost: Floats | None = None) -> Choice:
    """(n,) the best model on each query, the cheapest of them: upper limit of any router.

    Args:
        cost: (n, m) what each answer did cost, or None.
    """

    def work(part: Floats, paid: Floats) -> Choice:
        y = np.where(np.isnan(part), -np.inf, part)
        top = y == y.max(axis=1, keepdims=True)
        price = np.where(np.isnan(paid), np.inf, paid)
        # Two keys: among the best, the cheapest; an unknown price is still among the best.
        price = np.where(top, np.where(np.isinf(price), 1e300, price), np.inf)
        return np.asarray(np.argmin(price, axis=1))

    free = np.broadcast_to(0.0, labels.shape)
    return np.asarray(by_rows(work, labels, free if cost is None else cost))


def task_oracle(
    labels: Floats,
    tasks: NDArray[np.str_],
    cost: Floats | None = None,
    order: NDArray[np.int64] | None = None,
) -> Choice:
    """(n,) the best single model of each query's task, among those with a label there.

    Where the task's best model has no label on a query, the next in `order`
    answers, by default the models as `ranked`. The best of a task is the one that
    is right most often so; no single model, measured the same way, is above this.

    Args:
        cost: (m,) of each model, for ties.
    """
    out = np.zeros(len(labels), dtype=np.int64)
    order = ranked(labels, cost) if order is None else order
    who = alone(known(labels), order)
    got = np.asarray(by_rows(np.nan_to_num, at_choice(labels, who)))
    for task in distinct(tasks):
        at = np.flatnonzero(tasks == task)
        out[at] = who[at, best_single(take_rows(got, at), cost)]
    return out


def random_mean(labels: Floats) -> Floats:
    """(n,) expected score of a model drawn uniformly among those with a label."""
    return np.asarray(by_rows(lambda part: mean_costs(part.T), labels))


def mix_frontier(cost: Floats, accuracy: Floats) -> tuple[Floats, Floats]:
    """Corners of the best random mixes of single models, cheapest first.

    A random mix of two models lies on the line between them, so the best mixes
    are the non-decreasing upper concave hull of the models' (cost, accuracy)
    points (RouterBench, Hu et al., arXiv 2403.12031, the Zero router).

    >>> mix_frontier(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.2, 0.3, 0.8, 0.7]))
    (array([1., 3.]), array([0.2, 0.8]))
    """
    order = np.lexsort((-accuracy, cost))
    hull: list[tuple[float, float]] = []
    for x, y in zip(cost[order].tolist(), accuracy[order].tolist(), strict=True):
        if hull and (x == hull[-1][0] or y <= hull[-1][1]):
            continue
        while len(hull) > 1 and _below(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    return np.array([x for x, _ in hull]), np.array([y for _, y in hull])


def _below(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether b lies on or below the line from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) <= (c[1] - a[1]) * (b[0] - a[0])


def mix_weights(cost: Floats, accuracy: Floats, budget: float) -> Floats:
    """(m,) probabilities of the best random mix of single models at a mean cost.

    Below the cheapest model the cheapest is taken; past the last corner, the last.

    >>> mix_weights(np.array([1.0, 3.0]), np.array([0.2, 0.8]), 2.0)
    array([0.5, 0.5])
    """
    xs, ys = mix_frontier(cost, accuracy)
    corner = [
        int(np.flatnonzero((cost == x) & (accuracy == y))[0]) for x, y in zip(xs, ys, strict=True)
    ]
    weights = np.zeros(len(cost))
    if budget <= xs[0]:
        weights[corner[0]] = 1.0
    elif budget >= xs[-1]:
        weights[corner[-1]] = 1.0
    else:
        right = int(np.searchsorted(xs, budget, side="right"))
        share = (budget - xs[right - 1]) / (xs[right] - xs[right - 1])
        weights[corner[right]] = share
        weights[corner[right - 1]] += 1 - share
    return weights


# Why routers stop short of the oracle: hard queries, agreement, exchanged wins, collapse.
#
# Where a metric needs right or wrong it takes `correct`, the decisions
# (`Core.decided`: 1, 0 and NaN for missing), never its own threshold.


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
