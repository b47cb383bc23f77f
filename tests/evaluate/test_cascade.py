"""A cascade pays for every answer it asks, and its list is the best within its budget."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import Examples, Queries
from routeyard.pipelines.evaluate import cascade

N, M = 160, 4


def drawn(seed: int) -> tuple[Examples, np.ndarray]:
    """(examples, (n, m) a signal that is higher where an answer is right)."""
    rng = np.random.default_rng(seed)
    labels = (rng.random((N, M)) < np.linspace(0.4, 0.85, M)).astype(float)
    shown = np.clip(0.5 * labels + 0.5 * rng.random((N, M)), 0, 1)
    cost = rng.uniform(0.8, 1.2, (N, M)) * np.array([1.0, 3.0, 9.0, 20.0])
    queries = Queries(tuple(f"q{i}" for i in range(N)), np.array(["t"] * N))
    return Examples(queries, tuple("abcd"), labels, {"usd": cost}), shown


def by_hand(order, least, shown, labels, cost, check):
    """(mean score, mean cost), question by question."""
    scores, costs = [], []
    for row in range(len(labels)):
        paid = 0.0
        for place, model in enumerate(order):
            paid += cost[row, model]
            if place == len(order) - 1:
                break
            paid += check
            if shown[row, model] >= least[place]:
                break
        scores.append(labels[row, model])
        costs.append(paid)
    return float(np.mean(scores)), float(np.mean(costs))


@pytest.mark.parametrize("check", [0.0, 0.7])
def test_every_answer_and_check_is_paid(check: float) -> None:
    train, shown = drawn(0)
    for order in permutations(range(M), 3):
        one = cascade.Frugal(order, (0.6, 0.75), check)
        done = one.run(shown, train.labels, train.costs["usd"])
        wanted = by_hand(order, one.least, shown, train.labels, train.costs["usd"], check)
        assert (done.score.mean(), done.cost.mean()) == pytest.approx(wanted)
        assert done.asked.min() >= 1
        assert done.asked.max() <= 3


def test_the_list_is_the_best_on_train_within_each_budget() -> None:
    train, shown = drawn(1)
    cost = train.costs["usd"]
    budgets = np.array([0.1, 2.0, 6.0, 40.0])
    found = cascade.frugal(train, shown, "usd", budgets)
    assert found[0].order == (0,)  # nothing fits, and the cheapest is asked
    reached = []
    for one, budget in zip(found[1:], budgets[1:], strict=True):
        score, paid = by_hand(one.order, one.least, shown, train.labels, cost, 0.0)
        assert paid <= budget
        # No list of two models with any threshold of the grid is better within the budget.
        for a, b in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)):
            for cut in np.quantile(shown[:, a], np.linspace(0, 1, cascade.THRESHOLDS + 1)[1:]):
                other, spent = by_hand((a, b), (cut,), shown, train.labels, cost, 0.0)
                assert spent > budget or other <= score + 1e-12
        reached.append(score)
    assert reached == sorted(reached)
    # On questions it was not fitted on it beats the best single model for less.
    test, told = drawn(2)
    done = found[-1].run(told, test.labels, test.costs["usd"])
    assert done.score.mean() > test.labels.mean(axis=0).max()
    assert done.cost.mean() < test.costs["usd"].mean(axis=0).max() * 1.5


def test_a_verified_cascade_stops_at_the_first_right_answer() -> None:
    train, _ = drawn(3)
    y, cost = train.labels, train.costs["usd"]
    for stages in range(1, M + 1):
        done = cascade.verified(y, y, cost, cascade.cheapest_first(y, cost)[:stages])
        assert done.score.mean() == y[:, :stages].max(axis=1).mean()
        first = np.where(y[:, :stages].any(axis=1), y[:, :stages].argmax(axis=1), stages - 1)
        assert done.asked.tolist() == (first + 1).tolist()
        paid = [cost[row, : k + 1].sum() for row, k in enumerate(first)]
        assert done.cost == pytest.approx(np.array(paid))


def test_the_order_of_models_decides_no_cascade() -> None:
    train, shown = drawn(5)
    flat = np.tile([1.0, 1.0, 2.0, 2.0], (len(train.labels), 1))  # sizes: two pairs of equals
    budgets = np.array([1.0, 2.0, 3.0])
    found = []
    for order in (np.arange(M), np.arange(M)[::-1]):
        turned = replace(train.with_models(order), costs={"usd": flat[:, order]})
        lists = cascade.frugal(turned, shown[:, order], "usd", budgets)
        by_price = order[cascade.cheapest_first(turned.labels, flat[:, order])]
        found.append(([order[list(one.order)].tolist() for one in lists], by_price.tolist()))
    assert found[0] == found[1]


def test_what_is_not_known_is_not_guessed() -> None:
    train, shown = drawn(4)
    shown[3, 1] = np.nan
    with pytest.raises(BadInput, match="every model's answer, cost and signal"):
        cascade.frugal(train, shown, "usd", np.array([5.0]))
    assert list(cascade.surest({"margin": np.ones((2, 2)), "entropy": shown})) == ["margin"]
    assert cascade.surest({"entropy": np.ones((2, 2))})["entropy"].tolist() == [[-1, -1], [-1, -1]]
