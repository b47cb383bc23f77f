"""A forest as arrays: grown by scikit-learn, kept and read without it."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Array, Floats, Ints, Vectors

#: With more than twice as many outputs, splits are sought on this many leading directions.
DIRECTIONS = 16


def grow(
    x: Vectors, y: Floats, *, trees: int, depth: int, leaf: int, features: float | str, seed: int
) -> dict[str, Array]:
    """A random forest of regression trees with (n, k) outputs, as arrays.

    The cost of a split grows with the outputs. Of many outputs the trees see the
    `DIRECTIONS` along which the rows vary most, the best approximation of the squared
    error they reduce; the values of the leaves are the means of all outputs.

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
    ).fit(x, _seen(y))
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
        if tree.value.shape[1] == outputs:
            found["value"][k, :n] = tree.value[:, :, 0]
        else:
            rows = forest.estimators_samples_[k]
            found["value"][k, :n] = _means(tree.apply(x[rows]), y[rows], n)
    return found


def _seen(y: Floats) -> Floats:
    """What splits are sought on: all outputs (one as a vector), or the leading directions."""
    if y.shape[1] <= 2 * DIRECTIONS:
        return y if y.shape[1] > 1 else y[:, 0]
    centred = y - y.mean(axis=0)
    return np.asarray(centred @ np.linalg.eigh(centred.T @ centred)[1][:, -DIRECTIONS:])


def _means(leaf: Ints, y: Floats, nodes: int) -> Floats:
    """(nodes, k) mean of the rows in every leaf; 0 for inner nodes."""
    from scipy.sparse import csr_matrix

    member = csr_matrix((np.ones(len(leaf)), (leaf, np.arange(len(leaf)))), (nodes, len(leaf)))
    n = np.bincount(leaf, minlength=nodes)
    return np.asarray((member @ y) / np.maximum(n, 1)[:, None])


def _down(threshold: Floats) -> Vectors:
    """Largest float32 not above each threshold: x ≤ t is decided the same for float32 x."""
    near = threshold.astype(np.float32)
    return np.where(near > threshold, np.nextafter(near, np.float32(-np.inf)), near)


def per_tree(forest: dict[str, Array], x: Vectors) -> tuple[Floats, Floats]:
    """(n, k) mean and standard deviation over the trees."""
    total = np.zeros((len(x), forest["value"].shape[2]))
    squares = np.zeros_like(total)
    for k in range(len(forest["feature"])):
        one = forest["value"][k, leaf_of(forest, k, x)]
        total += one
        squares += one.astype(np.float64) ** 2
    n = len(forest["feature"])
    mean = total / n
    return mean, np.sqrt(np.maximum(squares / n - mean**2, 0.0))


def leaf_of(forest: dict[str, Array], tree: int, x: Vectors) -> Ints:
    """(n,) the leaf that each question falls into."""
    at = np.zeros(len(x), np.int64)
    while True:
        left = forest["left"][tree, at]
        inner = left >= 0
        if not inner.any():
            return at
        value = x[np.arange(len(x)), forest["feature"][tree, at]]
        right = forest["right"][tree, at]
        step = np.where(value <= forest["threshold"][tree, at], left, right)
        at = np.where(inner, step, at)
