"""Selection rules that weigh a whole batch, a pair or a similarity; `selection` holds the others.

A rule turns scores (n, m) and costs into choices. What a rule can do with a
router depends on what its scores mean (`routeyard.pipelines.routers.listed.Scale`): only a
probability can be weighed against cost in one unit. `supported` says which rules a
scale has; `refuse` answers for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from routeyard.pipelines.common.arrays import Bools, Floats, Ints
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.metrics.selection import Choice, best

#: Rule → scales of scores that it can use, and what it does.
RULES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "argmax": (("probability", "similarity", "strength"), "highest score, cost disregarded"),
    "utility": (("probability",), "(1−λ)·score − λ·cost, cost min-max scaled"),
    "query-budget": (
        ("probability", "similarity", "strength"), "highest score among models within a budget",
    ),
    "sufficient": (("probability",), "cheapest model whose score reaches a floor"),
    "mean-budget": (("probability",), "best mix whose mean cost stays within a budget (LP)"),
    "batch-budget": (("probability",), "best assignment of a batch within a sum (LP)"),
    "threshold": (
        ("probability", "similarity", "strength"), "strong of a pair above a quantile of scores",
    ),
    "similarity": (("similarity",), "similarity − λ·cost"),
}  # fmt: skip


def supported(scale: str) -> list[str]:
    """Rules that scores of a scale can be used with."""
    return [name for name, (scales, _) in RULES.items() if scale in scales]


def refuse(rule: str, scale: str, router: str) -> None:
    """Raises BadInput: the rule is unknown, or cannot use scores of this scale."""
    if rule not in RULES:
        raise BadInput(f"there is no rule {rule!r}", next_step=f"known: {', '.join(RULES)}")
    if scale not in RULES[rule][0]:
        raise BadInput(
            f"the rule {rule!r} needs a {' or '.join(RULES[rule][0])}, and the scores of "
            f"{router!r} are a {scale}",
            next_step=f"rules for it: {', '.join(supported(scale))}",
        )


def batch_budget(scores: Floats, cost: Floats, budget: float) -> Choice:
    """(n,) choices of greatest total score whose total cost is at most `budget`.

    The integer program of "Fly-Swat or Cannon?" by Lagrangian relaxation: for a
    price of money λ each question takes argmax score − λ·cost; the smallest λ that
    keeps the budget is found by bisection, and what is left over buys the best
    remaining upgrades. Within one question's upgrade of the optimum.

    Args:
        scores, cost: (n, m), cost in the unit of `budget`.

    Raises:
        BadInput: a cost is unknown, or not even the cheapest models fit.

    >>> s, c = np.array([[0.9, 0.5], [0.6, 0.5]]), np.array([[2.0, 1.0], [2.0, 1.0]])
    >>> batch_budget(s, c, 3.0)
    array([0, 1])
    """
    if np.isnan(cost).any():
        raise BadInput("a cost is unknown, so no budget can be kept")
    rows = np.arange(len(scores))
    cheapest = cost.min(axis=1)
    if cheapest.sum() > budget * (1 + 1e-12):
        raise BadInput(
            f"the budget {budget:g} is below {cheapest.sum():g}, the cost of the cheapest models",
            next_step="raise it",
        )

    def at(weight: float) -> Choice:
        value = scores - weight * cost
        # Of equals the cheaper: the budget is kept with the least λ.
        tied = value >= value.max(axis=1, keepdims=True) - 1e-12
        return np.asarray(np.argmin(np.where(tied, cost, np.inf), axis=1))

    low, high = 0.0, 1.0
    if cost[rows, at(0.0)].sum() <= budget:
        return at(0.0)
    while cost[rows, at(high)].sum() > budget:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if cost[rows, at(middle)].sum() <= budget else (middle, high)
    choice = at(high)
    left = budget - cost[rows, choice].sum()
    gain = scores - scores[rows, choice][:, None]
    extra = cost - cost[rows, choice][:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = np.where((gain > 0) & (extra > 0), gain / extra, -np.inf)
    done = np.zeros(len(scores), dtype=bool)
    for flat in np.argsort(-rate, axis=None, kind="stable"):
        i, m = divmod(int(flat), scores.shape[1])
        if rate[i, m] == -np.inf:
            break
        if not done[i] and extra[i, m] <= left:
            choice[i], done[i] = m, True
            left -= extra[i, m]
    return choice


def mean_budget(scores: Floats, cost: Floats, budget: float) -> Floats:
    """(n, m) probabilities of the best mix per question with mean cost at most `budget`.

    Prompt-to-Leaderboard's linear program, max Σ p·score, Σ p·cost ≤ C, Σ p = 1, on
    each question alone. Its solution mixes at most two models: corners of the
    upper hull of (cost, score).

    Args:
        cost: (m,) cost a router knows beforehand.

    Raises:
        BadInput: a cost is unknown, or the cheapest model is above the budget.
    """
    if np.isnan(cost).any():
        raise BadInput("a cost is unknown, so no budget can be kept")
    if cost.min() > budget:
        raise BadInput(f"the cheapest model costs {cost.min():g}, above the budget {budget:g}")
    n, m = scores.shape
    out = np.zeros((n, m))
    within = cost <= budget
    rows = np.arange(n)
    single = np.argmax(np.where(within, scores, -np.inf), axis=1)
    value, pair = scores[rows, single], np.stack([single, single], axis=1)
    share = np.ones(n)
    for a in np.flatnonzero(within):
        for b in np.flatnonzero(~within):
            part = (cost[b] - budget) / (cost[b] - cost[a])
            mixed = part * scores[:, a] + (1 - part) * scores[:, b]
            better = mixed > value + 1e-15
            value = np.where(better, mixed, value)
            pair[better], share = (a, b), np.where(better, part, share)
    out[rows, pair[:, 0]] += share
    out[rows, pair[:, 1]] += 1 - share
    return out


def cheapest_sufficient(scores: Floats, cost: Floats, floor: float) -> Choice:
    """(n,) the cheapest model whose score is at least `floor`; the highest score where none is.

    With 1 − q for `floor`, q the quantile of nonconformity on validation, it is
    CP-Router's choice inside a conformal set of models.

    >>> cheapest_sufficient(np.array([[0.9, 0.8], [0.6, 0.5]]), np.array([2.0, 1.0]), 0.7)
    array([1, 0])
    """
    enough = scores >= floor
    can = np.where(enough.any(axis=1, keepdims=True), enough, scores >= np.max(scores, 1)[:, None])
    whole = np.where(can, np.broadcast_to(cost, scores.shape), np.inf)
    # Of equally cheap models the one with the higher score.
    tied = whole <= whole.min(axis=1, keepdims=True)
    return np.asarray(np.argmax(np.where(tied, scores, -np.inf), axis=1))


def quantile_threshold(wanted: Floats, share: float) -> Bools:
    """(n,) whether the strong model of a pair is asked, for a share of the questions.

    Those with the greatest score; of equals at the edge the first ones.

    >>> quantile_threshold(np.array([0.1, 0.9, 0.5, 0.5]), 0.5).tolist()
    [False, True, True, False]
    """
    n = round(share * len(wanted))
    out = np.zeros(len(wanted), dtype=bool)
    out[np.argsort(-wanted, kind="stable")[:n]] = True
    return out


def similarity_minus_cost(similarity: Floats, cost: Floats, weight: float, order: Ints) -> Choice:
    """(n,) argmax of similarity − λ·cost, cost min-max scaled over models.

    The rule of cost-spectrum contrastive routing; of equals the first of `order`.
    """
    low, high = float(np.nanmin(cost)), float(np.nanmax(cost))
    scaled = np.zeros_like(cost) if high <= low else (cost - low) / (high - low)
    value = similarity - weight * scaled
    return best(value, np.ones(value.shape, dtype=bool), order)
