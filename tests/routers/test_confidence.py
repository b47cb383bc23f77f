"""Routers that read signals of answers: planted confidence is found, shuffled is not."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from routeyard.pipelines.evaluate.metrics.tradeoff import auroc
from routeyard.pipelines.routers import ROUTERS, Examples, Queries
from routeyard.pipelines.routers.references import on_frontier

#: Router → its signal, and how confidence is read off it.
SIGNALS = {
    "self-ask": ("self_assessment", lambda v: v),
    "margin": ("margin", lambda v: v),
    "entropy": ("entropy", lambda v: math.exp(-v)),
    "max-logit": ("max_logit", lambda v: math.exp(v)),
    "semantic-entropy": ("semantic_entropy[discrete]", lambda v: math.exp(-v)),
}


def shown(n: int, seed: int, name: str) -> Examples:
    """The small model's errors follow its signal; the large one shows nothing."""
    rng = np.random.default_rng(seed)
    sure = rng.random(n)
    labels = np.stack([rng.random(n) < 0.1 + 0.8 * sure, rng.random(n) < 0.9], 1).astype(float)
    raw = {"entropy": -np.log(0.02 + sure), "max_logit": np.log(0.02 + sure) - 0.5}
    raw["semantic_entropy[discrete]"] = 4 - 4 * sure
    values = raw.get(name, sure)
    values = values - min(0.0, values.min()) if "entropy" in name else values
    signal = np.stack([values, np.full(n, np.nan)], axis=1)
    ids = tuple(f"{seed}-{i}" for i in range(n))
    queries = Queries(ids, np.full(n, "t"), signals={name: signal})
    return Examples(queries, ("small", "large"), labels)


@pytest.mark.parametrize("router", SIGNALS)
def test_confidence_that_predicts_errors_is_used_and_shuffled_is_not(router: str) -> None:
    name, function = SIGNALS[router]
    train, test = shown(300, 0, name), shown(400, 1, name)
    fitted = ROUTERS.get(router)()
    fitted.fit(train)
    found = fitted.scores(test.queries)
    want = [function(float(v)) for v in test.queries.signals[name][:, 0]]
    assert found[:, 0] == pytest.approx(want)
    # What shows nothing stands at its level.
    assert found[:, 1] == pytest.approx(train.labels[:, 1].mean())
    assert auroc(-found[:, 0], test.labels[:, 0]) > 0.75
    mixed = np.random.default_rng(2).permutation(test.queries.signals[name])
    ablated = dataclasses.replace(test.queries, signals={name: mixed})
    assert 0.4 < auroc(-fitted.scores(ablated)[:, 0], test.labels[:, 0]) < 0.6


def test_a_calibrated_signal_is_a_chance_and_can_be_turned_round() -> None:
    train, test = shown(600, 0, "margin"), shown(600, 1, "margin")
    backwards = [
        dataclasses.replace(
            part,
            queries=dataclasses.replace(
                part.queries, signals={"margin": 1 - part.queries.signals["margin"]}
            ),
        )
        for part in (train, test)
    ]
    plain, curve = ROUTERS.get("margin")(), ROUTERS.get("margin")(calibrated=True)
    plain.fit(backwards[0])
    curve.fit(backwards[0])
    small = test.labels[:, 0]
    assert auroc(-plain.scores(backwards[1].queries)[:, 0], small) < 0.3
    found = curve.scores(backwards[1].queries)[:, 0]
    assert auroc(-found, small) > 0.75
    assert abs(found.mean() - small.mean()) < 0.05


def test_a_missing_signal_is_neither_sure_nor_unsure() -> None:
    train = shown(100, 0, "margin")
    holes = train.queries.signals["margin"].copy()
    holes[:40, 0] = np.nan
    part = dataclasses.replace(
        train, queries=dataclasses.replace(train.queries, signals={"margin": holes})
    )
    router = ROUTERS.get("margin")()
    router.fit(part)
    assert router.scores(part.queries)[:40, 0] == pytest.approx(np.nanmean(holes[:, 0]))


def test_thompson_draws_from_the_posterior_of_each_model() -> None:
    rng = np.random.default_rng(0)
    labels = (rng.random((60, 2)) < [0.3, 0.8]).astype(float)
    labels[:5, 1] = np.nan
    queries = Queries(tuple(f"q{i}" for i in range(4000)), np.full(4000, "t"))
    router = ROUTERS.get("thompson")(seed=1)
    few = Queries(queries.query_ids[:60], queries.tasks[:60])
    router.fit(Examples(few, ("a", "b"), labels))
    drawn = router.scores(queries)
    for k in range(2):
        known = [v for v in labels[:, k].tolist() if v == v]
        a, b = 1 + sum(known), 1 + sum(1 - v for v in known)
        assert drawn[:, k].mean() == pytest.approx(a / (a + b), abs=0.005)
        spread = math.sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))
        assert drawn[:, k].std() == pytest.approx(spread, rel=0.05)
    # A question's draw is its own: the others asked with it change nothing.
    assert np.array_equal(router.scores(few), drawn[:60])


def test_pareto_random_asks_the_frontier_alone_and_evenly() -> None:
    rng = np.random.default_rng(1)
    labels = np.tile([0.9, 0.5, 0.4, 0.7], (50, 1))
    usd = np.tile([4.0, 1.0, 2.0, 2.0], (50, 1))
    names = ("a", "b", "c", "d")
    queries = Queries(tuple(f"q{i}" for i in range(3000)), np.full(3000, "t"))
    router = ROUTERS.get("pareto-random")(seed=2)
    part = Queries(queries.query_ids[:50], queries.tasks[:50])
    router.fit(Examples(part, names, labels, {"usd": usd}))
    share = np.bincount(router.scores(queries).argmax(axis=1), minlength=4) / 3000
    assert share[2] == 0
    assert share[[0, 1, 3]] == pytest.approx(1 / 3, abs=0.04)
    for _ in range(50):
        accuracy, cost = rng.integers(0, 4, 6) / 4, rng.integers(0, 4, 6) / 4
        slow = [
            not any(
                accuracy[j] >= accuracy[i]
                and cost[j] <= cost[i]
                and (accuracy[j] > accuracy[i] or cost[j] < cost[i])
                for j in range(6)
            )
            for i in range(6)
        ]
        assert on_frontier(accuracy, cost).tolist() == slow


def test_umr_is_the_mean_error_of_the_nearest_cluster_on_validation() -> None:
    rng = np.random.default_rng(3)

    def part(n: int) -> Examples:
        vectors = rng.normal(size=(n, 5)).astype(np.float32)
        labels = (rng.random((n, 3)) < 0.5).astype(float)
        labels[rng.random((n, 3)) < 0.2] = np.nan
        ids = tuple(f"q{i}" for i in range(n))
        return Examples(Queries(ids, np.full(n, "t"), vectors), ("a", "b", "c"), labels)

    train = dataclasses.replace(part(80), validation=part(25))
    test = part(30)
    router = ROUTERS.get("umr")(k=6)
    router.fit(train)
    found, held = router.scores(test.queries), train.validation
    assert held is not None

    def cluster(v: np.ndarray) -> int:
        return min(range(6), key=lambda k: float(((v - router._centres[k]) ** 2).sum()))

    where = [cluster(v) for v in held.queries.vectors()]
    for i, v in enumerate(test.queries.vectors()):
        for m in range(3):
            errors = [
                1 - float(y)
                for y, k in zip(held.labels[:, m], where, strict=True)
                if k == cluster(v) and y == y
            ]
            want = 1 - (sum(errors) / len(errors) if errors else 0.5)
            assert found[i, m] == pytest.approx(want)
