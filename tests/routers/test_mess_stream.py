"""MESS+ as a stream: it keeps its service level, spends less than the dearest model, learns."""

from __future__ import annotations

import numpy as np
import pytest

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.routers.networks import serve

N = 1500
RNG = np.random.default_rng(0)
KIND = RNG.integers(0, 2, N)
VECTORS = np.eye(8)[KIND].astype(np.float32) + 0.1 * RNG.normal(size=(N, 8)).astype(np.float32)
#: A cheap model for each kind of question, and a dear one for both.
CHANCE = np.stack([np.where(KIND == 0, 0.9, 0.2), np.where(KIND == 1, 0.9, 0.2), np.full(N, 0.9)])
LABELS = (RNG.random((N, 3)) < CHANCE.T).astype(float)
COST = np.tile([1.0, 1.1, 10.0], (N, 1))


def test_the_level_is_kept_at_less_than_the_dearest_models_cost() -> None:
    done = serve(VECTORS, LABELS, COST, alpha=0.8, trade_off=0.1, seed=1)
    assert sorted(done.order.tolist()) == list(range(N))
    late = slice(N // 3, None)
    assert done.hit[late].mean() >= 0.78
    asked = ~done.explored
    # Kinds are told apart: the cheap model that suits answers most questions that are not explored.
    kinds = KIND[done.order]
    suits = done.choice[late][asked[late]] == kinds[late][asked[late]]
    assert suits.mean() > 0.6
    assert done.spent[late].mean() < 0.5 * COST[:, 2].mean()
    # The queue is what the hits say.
    queue = 0.0
    for hit, kept in zip(done.hit, done.queue, strict=True):
        queue = max(0.0, queue + 0.8 - hit)
        assert kept == pytest.approx(queue)


def test_exploring_fades_and_costs_all_models() -> None:
    done = serve(VECTORS, LABELS, COST, alpha=0.5, explore=0.5, seed=2)
    assert done.explored[0]
    assert done.explored[:100].mean() > done.explored[-500:].mean() > 0
    assert np.allclose(done.spent[done.explored], 12.1)
    assert (done.choice[done.explored] == 2).all()


def test_without_a_level_only_cost_counts_and_a_seed_is_an_order() -> None:
    done = serve(VECTORS[:300], LABELS[:300], COST[:300], alpha=0.0, seed=3)
    assert (done.choice[~done.explored] == 0).all()
    again = serve(VECTORS[:300], LABELS[:300], COST[:300], alpha=0.0, seed=3)
    other = serve(VECTORS[:300], LABELS[:300], COST[:300], alpha=0.0, seed=4)
    assert np.array_equal(done.order, again.order)
    assert np.array_equal(done.choice, again.choice)
    assert not np.array_equal(done.order, other.order)


def test_gaps_and_levels_that_are_none_are_refused() -> None:
    with pytest.raises(BadInput, match="no share"):
        serve(VECTORS, LABELS, COST, alpha=1.2)
    holes = LABELS.copy()
    holes[3, 1] = np.nan
    with pytest.raises(BadInput, match="label and cost of every model"):
        serve(VECTORS, holes, COST, alpha=0.5)
