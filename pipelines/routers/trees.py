"""Forests and boosted trees: RoRF and OptLLM.

Trees are kept as arrays, so that a saved router is never a pickle.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from routeyard.pipelines.common.arrays import Array, Floats, Ints, Vectors, ranked
from routeyard.pipelines.common.matrix import Examples, Queries
from routeyard.pipelines.routers.base import mean_cost, model_means, usable
from routeyard.pipelines.routers.listed import listed
from routeyard.schemas.errors import BadInput

# A forest as arrays: grown by scikit-learn, kept and read without it.

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
    result = _leaves(len(grown), nodes)
    result["value"] = np.zeros((len(grown), nodes, outputs), np.float32)
    for k, tree in enumerate(grown):
        n = tree.node_count
        result["feature"][k, :n] = np.maximum(tree.feature, 0)
        result["left"][k, :n], result["right"][k, :n] = tree.children_left, tree.children_right
        result["threshold"][k, :n] = _down(tree.threshold)
        if tree.value.shape[1] == outputs:
            result["value"][k, :n] = tree.value[:, :, 0]
        else:
            rows = forest.estimators_samples_[k]
            result["value"][k, :n] = _means(tree.apply(x[rows]), y[rows], n)
    return result


def _leaves(trees: int, nodes: int) -> dict[str, Array]:
    """Arrays of trees of which every node is a leaf of value 0."""
    arrays = {name: np.full((trees, nodes), -1, np.int32) for name in ("left", "right")}
    arrays["feature"] = np.zeros((trees, nodes), np.int32)
    return arrays | {name: np.zeros((trees, nodes), np.float32) for name in ("threshold", "value")}


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
        item = forest["value"][k, leaf_of(forest, k, x)]
        total += item
        squares += item.astype(np.float64) ** 2
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


# Boosted trees as arrays: grown by XGBoost, one ensemble per model, kept and read without it.


def boost(
    x: Vectors, y: Floats, *, trees: int, depth: int, rate: float, seed: int
) -> dict[str, Array]:
    """An ensemble per column of y, by cross-entropy on the rows where it is known.

    Args:
        y: (n, k) in [0, 1], NaN where unknown; each column has a known row.

    Returns:
        feature, left, right (t, nodes) int32, threshold and value (t, nodes) float32, output
        (t,) the column that a tree adds to, level (k,) the logits it starts from.

    Raises:
        BadInput: XGBoost is not installed.
    """
    try:
        import xgboost
    except ImportError as error:
        raise BadInput(
            "this router grows its trees with XGBoost, which is not installed",
            next_step="pip install -c constraints.txt '.[xgboost]'",
        ) from error
    means = np.clip(np.nanmean(y, axis=0), 0.01, 0.99)
    settings = {
        "objective": "binary:logistic", "max_depth": depth, "eta": rate, "tree_method": "hist",
        "max_bin": 64, "nthread": 1, "seed": seed, "verbosity": 0,
    }  # fmt: skip
    whole = xgboost.DMatrix(x) if not np.isnan(y).any() else None
    grown, outputs = [], []
    for column, mean in enumerate(means):
        known = ~np.isnan(y[:, column])
        # Binning the features costs as much as several trees: once where all rows count.
        data = xgboost.DMatrix(x[known]) if whole is None else whole
        data.set_label(y[known, column])
        booster = xgboost.train({**settings, "base_score": float(mean)}, data, trees)
        model = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"]
        grown += model["trees"]
        outputs += [column] * len(model["trees"])
    return {
        **_arrays(grown),
        "output": np.array(outputs, np.int32),
        "level": np.log(means / (1 - means)),
    }


def _arrays(grown: list[dict[str, Any]]) -> dict[str, Array]:
    """Trees of XGBoost's JSON, padded with leaves to one shape."""
    nodes = max((len(tree["left_children"]) for tree in grown), default=1)
    arrays = _leaves(len(grown), nodes)
    for k, tree in enumerate(grown):
        n = len(tree["left_children"])
        left = np.array(tree["left_children"], np.int32)
        said = np.array(tree["split_conditions"], np.float32)
        arrays["left"][k, :n], arrays["right"][k, :n] = left, tree["right_children"]
        arrays["feature"][k, :n] = np.where(left < 0, 0, tree["split_indices"])
        # XGBoost goes left where x < t; the arrays go left where x ≤ t.
        arrays["threshold"][k, :n] = np.nextafter(said, np.float32(-np.inf))
        arrays["value"][k, :n] = np.where(left < 0, said, 0.0)
    return arrays


def logits(ensemble: dict[str, Array], x: Vectors) -> Floats:
    """(n, k) sums of the trees of every column, from its level on."""
    total = np.tile(ensemble["level"], (len(x), 1))
    for k, output in enumerate(ensemble["output"].tolist()):
        total[:, output] += ensemble["value"][k, leaf_of(ensemble, k, x)]
    return total


# OptLLM: forests with an uncertainty, for a batch that is assigned as a whole.


class Forest:
    """What routers of one random forest share: how it is grown."""

    def __init__(self, **settings: Any):
        self.settings = settings


def filled(labels: Floats) -> Floats:
    """The labels, each that is missing as its model's mean: trees take no weights per output."""
    return np.where(np.isnan(labels), model_means(labels), labels)


@listed
class OptLLM(Forest):
    """OptLLM (Liu et al., arXiv 2405.15130).

    Task: P(correct) of every (question, model) with its uncertainty, then the
    assignment of a whole batch on the front of accuracy and cost. Prediction: forests
    of depth 10 over bootstraps, p + a·sd over them (a = 1, "robust"). Rule: a heuristic
    search over assignments; its front is that of a linear
    program whose solution is a threshold on the trade-off λ.

    Published code weighs its bootstraps by how well they predict their *own* output
    on validation, uses 2 % of the data for training, and lets the optimiser read the
    test questions' true costs: none is followed. The plateau study's `optllm_xgb`
    boosts trees instead. The default adds no bonus: at λ = 0 optimism about rarely
    seen regions only costs accuracy; the preset `code` has a = 1.
    """

    name = "optllm"

    def __init__(
        self, trees: int = 40, depth: int = 10, leaf: int = 20, bonus: float = 0.0, seed: int = 42
    ):
        super().__init__(trees=trees, depth=depth, leaf=leaf, features=0.1, seed=seed)
        self.bonus = bonus

    def fit(self, train: Examples) -> OptLLM:
        train = usable(train)
        self._forest = grow(train.queries.vectors(), filled(train.labels), **self.settings)
        return self

    def scores(self, queries: Queries) -> Floats:
        mean, deviation = per_tree(self._forest, queries.vectors())
        return np.clip(mean + self.bonus * deviation, 0.0, 1.0)


# OptLLM's older predictor, by boosted trees: one XGBoost ensemble per model.


@listed
class OptLLMBoosted:
    """The boosted form of OptLLM (Liu et al., arXiv 2405.15130); `optllm_xgb` of the plateau study.

    Task: P(correct) per model, each by its own XGBoost classifier; the assignment is
    `optllm`'s. Loss: cross-entropy. Published: 1,000 trees of depth 100 a model
    (preset `code`), which repeat the labels they have seen; the default is a few
    shallow ones. A model without any label keeps the pool's mean.

    No rows or columns are sampled, so a fit has no chance in it. Needs the extra
    `xgboost`; a fitted router is arrays and is read without it.
    """

    name = "optllm-xgb"

    def __init__(self, trees: int = 30, depth: int = 2, rate: float = 0.1):
        self.trees, self.depth, self.rate = trees, depth, rate

    def fit(self, train: Examples) -> OptLLMBoosted:
        train = usable(train)
        means = model_means(train.labels)
        unseen = np.isnan(train.labels).all(axis=0)
        labels = np.where(unseen & np.isnan(train.labels), means, train.labels)
        self._ensemble = boost(
            train.queries.vectors(), labels, trees=self.trees, depth=self.depth, rate=self.rate,
            seed=0,
        )  # fmt: skip
        return self

    def scores(self, queries: Queries) -> Floats:
        return np.asarray(1 / (1 + np.exp(-logits(self._ensemble, queries.vectors()))))


# RoRF: a random forest over embeddings, one output per model; in its published form for a pair.


@listed
class RoRF(Forest):
    """RoRF (Not Diamond, 2025).

    Published task: a pair (a, b) and four classes, a better, both wrong, both right,
    b better; P(a) = P(first) + P(second), so "both right" counts for b, which should
    be the cheap model. Rule: a where P(a) reaches a quantile.

    For M models the plateau study grows one forest with an output per model; so does
    this class. The preset `code` keeps the four classes between the most accurate model
    (a) and the cheapest (b; without costs the next most accurate); other models score
    0. Published: 100 trees, depth 20, all features at each split, seed 420. All
    features of a 384-dimensional embedding make trees alike and slow: the default
    tries a third root's worth. A missing label enters as the model's mean.
    """

    name = "rorf"
    #: Whether its constants are published ones (`listed.presets`).
    as_published: bool = False

    def __init__(
        self,
        trees: int = 40,
        depth: int = 10,
        leaf: int = 10,
        features: float | str = "sqrt",
        seed: int = 42,
    ):
        super().__init__(trees=trees, depth=depth, leaf=leaf, features=features, seed=seed)

    def fit(self, train: Examples) -> RoRF:
        train = usable(train, least_models=2 if self.as_published else 1)
        means = model_means(train.labels)
        self._m = len(means)
        self._pair: tuple[int, int] | None = None
        x = train.queries.vectors()
        if self.as_published:
            cost = mean_cost(train)
            self._pair = strong_and_cheap(means, cost, ranked(train.labels, cost))
            both = train.labels[:, list(self._pair)]
            rows = ~np.isnan(both).any(axis=1)
            four = np.eye(4)[classes(both[rows, 0], both[rows, 1])]
            self._forest = grow(x[rows], four, **self.settings)
        else:
            self._forest = grow(x, filled(train.labels), **self.settings)
        return self

    def scores(self, queries: Queries) -> Floats:
        result = per_tree(self._forest, queries.vectors())[0]
        if self._pair is None:
            return result
        out = np.zeros((len(queries), self._m))
        out[:, self._pair[0]] = result[:, 0] + result[:, 1]
        out[:, self._pair[1]] = result[:, 2] + result[:, 3]
        return out


def classes(a: Floats, b: Floats) -> Ints:
    """0 where a is better, 1 both 0, 2 equal and above 0, 3 where b is better.

    >>> classes(np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0, 1.0])).tolist()
    [0, 1, 2, 3]
    """
    return np.where(a > b, 0, np.where(b > a, 3, np.where(a == 0, 1, 2)))


def strong_and_cheap(means: Floats, cost: Floats | None, order: Ints) -> tuple[int, int]:
    """The most accurate model and the cheapest other one (without costs: the next best).

    Args:
        order: (m,) models, the first of which wins a tie.
    """
    strong = int(order[np.argmax(means[order])])
    by = order[np.argsort((-means if cost is None else cost)[order], kind="stable")]
    return strong, int(next(k for k in by if k != strong))
