"""Planted questions for tests of routers: who is right is known, and so is what a release shows."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.common.matrix import Arms
from routeyard.pipelines.routers import ROUTERS, Examples, Queries
from routeyard.pipelines.routers.base import traits_of
from routeyard.pipelines.routers.training import Trained

MODELS, DIMENSIONS = 4, 24
#: Settings with which a router fits in no time; networks take one epoch or two.
QUICK: dict[str, dict[str, Any]] = {
    "carrot": {"choices": (2, 8)},
    "mf": {"dimensions": (4,)},
    "mlp": {"widths": (8,), "decays": (0.1,)},
    "mlp-as-printed": {"epochs": 3},
    "optllm": {"trees": 5},
    "optllm-xgb": {"trees": 5},
    "rorf": {"trees": 5},
}


def everything(
    ids: tuple[str, ...], kind: NDArray[Any], vectors: NDArray[Any], chance: NDArray[np.float64],
    labels: NDArray[np.float64], usd: NDArray[np.float64],
) -> Examples:  # fmt: skip
    """Examples with all that a router may read.

    Confidence is the chance, every layer holds the question, descriptors tell the models apart
    and nothing more, and every model stands beside its neighbour, one of both with a budget.
    """
    models = chance.shape[1]
    shown = dict.fromkeys(("margin", "self_assessment"), chance)
    shown |= {name: -np.log(chance) for name in ("entropy", "semantic_entropy[discrete]")}
    shown["max_logit"] = np.log(chance)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    texts = tuple(f"question {i} of kind {k}" for i, k in enumerate(kind))
    queries = Queries(
        ids, np.array([f"task-{k}" for k in kind]), vectors, prompts=texts, questions=texts,
        signals=shown, hidden=np.repeat(vectors[:, None, :], 2, axis=1), hidden_of="m0",
    )  # fmt: skip
    arms = Arms(
        np.arange(models) // 2 * 2.0, np.resize([100.0, np.nan], models), usd * 1e-6, usd * 2e-6
    )
    footprints = np.eye(models, max(models, 8), dtype=np.float32)
    names = tuple(f"m{k}" for k in range(models))
    costs = {"usd": np.tile(usd, (len(ids), 1))}
    return Examples(queries, names, labels, costs, None, {"logit_footprint": footprints}, arms)


def planted(n: int, seed: int, *, missing: float = 0.0) -> tuple[Examples, NDArray[np.float64]]:
    """Four kinds, each with one model that is right with 0.9; the others with 0.3 to 0.45."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, MODELS, n)
    centres = np.linalg.qr(np.random.default_rng(99).normal(size=(DIMENSIONS, DIMENSIONS)))[0]
    vectors = centres[kind] + 0.12 * rng.normal(size=(n, DIMENSIONS))
    rng = np.random.default_rng(seed + 1)
    level = np.linspace(0.3, 0.45, MODELS)
    chance = np.where(kind[:, None] == np.arange(MODELS), 0.9, level)
    labels = (rng.random((n, MODELS)) < chance).astype(float)
    labels[rng.random((n, MODELS)) < missing] = np.nan
    ids = tuple(f"q{seed}-{i}" for i in range(n))
    made = everything(ids, kind, vectors, chance, labels, np.arange(1.0, MODELS + 1))
    return made, chance


def with_validation(train: Examples, held: Examples) -> Examples:
    return dataclasses.replace(train, validation=held)


def quick(name: str) -> dict[str, Any]:
    """Settings of a router for tests in which it need not learn much."""
    trained = issubclass(ROUTERS.get(name), Trained)
    return QUICK.get(name, {}) | ({"epochs": 2} if trained else {})


def fitted(name: str, train: Examples, **settings: Any) -> Any:
    """A fitted router; the seed of those that draw is 42."""
    made = ROUTERS.get(name)
    if traits_of(made).stochastic:
        settings = {"seed": 42, **settings}
    router = made(**settings)
    router.fit(train)
    return router
