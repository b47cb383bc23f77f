"""A forest as arrays: grown by scikit-learn, kept and read without it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.routers.base import Floats

#: Questions read at once.
BLOCK = 4096


def grow(
    x: NDArray[np.float32],
    y: Floats,
    *,
    trees: int,
    depth: int,
    leaf: int,
    features: float | str,
    seed: int,
) -> dict[str, NDArray[Any]]:
    """A random forest of regression trees with (n, k) outputs, as arrays.

    Returns:
        feature, left, right (t, nodes) int32, threshold (t, nodes) float32 and
        value (t, nodes, k) float32; shorter trees are padded with leaves.
    """
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(
        n_estimators=trees,
        max_depth=depth,
        min_samples_leaf=max(1, min(leaf, len(x) // 4)),
        max_features=features,
        random_state=seed,
        n_jobs=1,
    ).fit(x, y if y.shape[1] > 1 else y[:, 0])
    grown = [tree.tree_ for tree in forest.estimators_]
    nodes, outputs = max(tree.node_count for tree in grown), y.shape[1]
    shape = (len(grown), nodes)
    found = {
        "feature": np.zeros(shape, np.int32),
        "left": np.full(shape, -1, np.int32),
        "right": np.full(shape, -1, np.int32),
        "threshold": np.zeros(shape, np.float32),
        "value": np.zeros((*shape, outputs), np.float32),
    }
    for k, tree in enumerate(grown):
        n = tree.node_count
        found["feature"][k, :n] = np.maximum(tree.feature, 0)
        found["left"][k, :n], found["right"][k, :n] = tree.children_left, tree.children_right
        found["threshold"][k, :n] = _down(tree.threshold)
        found["value"][k, :n] = tree.value[:, :, 0]
    return found


def _down(threshold: Floats) -> NDArray[np.float32]:
    """Largest float32 not above each threshold: x ≤ t is decided the same for float32 x."""
    near = threshold.astype(np.float32)
    return np.where(near > threshold, np.nextafter(near, np.float32(-np.inf)), near)


def per_tree(forest: dict[str, NDArray[Any]], x: NDArray[np.float32]) -> tuple[Floats, Floats]:
    """(n, k) mean and standard deviation over the trees."""
    total = np.zeros((len(x), forest["value"].shape[2]))
    squares = np.zeros_like(total)
    for k in range(len(forest["feature"])):
        at = np.zeros(len(x), np.int64)
        while True:
            left = forest["left"][k, at]
            inner = left >= 0
            if not inner.any():
                break
            value = x[np.arange(len(x)), forest["feature"][k, at]]
            right = forest["right"][k, at]
            step = np.where(value <= forest["threshold"][k, at], left, right)
            at = np.where(inner, step, at)
        one = forest["value"][k, at]
        total += one
        squares += one.astype(np.float64) ** 2
    n = len(forest["feature"])
    mean = total / n
    return mean, np.sqrt(np.maximum(squares / n - mean**2, 0.0))
