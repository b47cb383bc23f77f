"""The plateau's facts on pools where each is known to hold or not."""

from __future__ import annotations

import numpy as np
import pytest

from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.evaluate.zoo.report import facts, lines

N, M = 600, 6


def core(labels: np.ndarray) -> Core:
    n = len(labels)
    return Core(
        query_ids=tuple(f"q{i:04d}" for i in range(n)),
        model_ids=tuple(f"m{k}" for k in range(M)),
        labels=labels,
        costs={},
        tasks=np.array(["t"] * n),
        domains=np.array(["d"] * n),
        splits={"dense": np.array(["test"] * n)},
        groups=np.arange(n),
    )


@pytest.fixture(scope="module")
def labels() -> np.ndarray:
    """The first model is right on 80 %, the others each on their own 10 % of the rest and more."""
    rng = np.random.default_rng(0)
    y = (rng.random((N, M)) < 0.1).astype(float)
    y[:, 0] = rng.random(N) < 0.8
    return y


def always(model: int) -> np.ndarray:
    return np.tile(np.eye(M)[model], (N, 1)).astype(np.float32)


def held(labels: np.ndarray, scores: dict[str, np.ndarray]) -> dict[str, bool | None]:
    found = facts(core(labels), core(labels), scores, np.arange(M))
    assert all(line.startswith("- ") for line in lines(found))
    return {fact.name.split(",")[0]: fact.holds for fact in found}


def test_a_plateau_is_seen(labels: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    scores = {}
    for name in ("knn", "a", "b", "c", "d"):
        scores[name] = always(0)
        # A few questions go elsewhere, others for every router.
        for row in rng.choice(N, 3, replace=False):
            scores[name][row] = np.eye(M)[1]
    found = held(labels, scores)
    assert found == {
        "kNN in the top tier": True,
        "top five within 0.6 points": True,
        "choices collapse onto 3 models": True,
        "most of the oracle gap on hard questions": True,
    }


def test_its_absence_is_seen(labels: np.ndarray) -> None:
    # One router knows the answers and asks whoever is right, the others ask one model each.
    scores = {"oracle": labels.astype(np.float32), **{f"m{k}": always(k) for k in range(1, 5)}}
    scores["knn"] = always(5)
    found = held(labels, scores)
    assert found["kNN in the top tier"] is False
    assert found["top five within 0.6 points"] is False
    # Questions that nearly all models solve are easy: a router that misses them has its gap there.
    easy = (np.random.default_rng(2).random((N, M)) < 0.95).astype(float)
    easy[:, 5] = 0
    assert (
        held(easy, {"knn": always(5), "a": always(5)})["most of the oracle gap on hard questions"]
        is False
    )
    spread = {
        name: np.random.default_rng(k).random((N, M)).astype(np.float32)
        for k, name in enumerate(("knn", "a", "b"))
    }
    found = held(labels, spread)
    assert found["choices collapse onto 3 models"] is False
    assert found["top five within 0.6 points"] is None


def test_routers_that_read_nothing_do_not_count(labels: np.ndarray) -> None:
    scores = {"random": always(3), "best-generalist": always(0), "knn": always(0)}
    assert facts(core(labels), core(labels), scores, np.arange(M)) == []
