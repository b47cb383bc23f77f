"""Boosted trees as arrays: grown by XGBoost, one ensemble per model, kept and read without it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Array, Floats, Vectors
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.routers.trees.forest import leaf_of


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
        found = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"]
        grown += found["trees"]
        outputs += [column] * len(found["trees"])
    return {
        **_arrays(grown),
        "output": np.array(outputs, np.int32),
        "level": np.log(means / (1 - means)),
    }


def _arrays(grown: list[dict[str, Any]]) -> dict[str, Array]:
    """Trees of XGBoost's JSON, padded with leaves to one shape."""
    nodes = max((len(tree["left_children"]) for tree in grown), default=1)
    shape = (len(grown), nodes)
    found: dict[str, Array] = {
        "feature": np.zeros(shape, np.int32),
        "left": np.full(shape, -1, np.int32),
        "right": np.full(shape, -1, np.int32),
        "threshold": np.zeros(shape, np.float32),
        "value": np.zeros(shape, np.float32),
    }
    for k, tree in enumerate(grown):
        n = len(tree["left_children"])
        left = np.array(tree["left_children"], np.int32)
        said = np.array(tree["split_conditions"], np.float32)
        found["left"][k, :n], found["right"][k, :n] = left, tree["right_children"]
        found["feature"][k, :n] = np.where(left < 0, 0, tree["split_indices"])
        # XGBoost goes left where x < t; the arrays go left where x ≤ t.
        found["threshold"][k, :n] = np.nextafter(said, np.float32(-np.inf))
        found["value"][k, :n] = np.where(left < 0, said, 0.0)
    return found


def logits(ensemble: dict[str, Array], x: Vectors) -> Floats:
    """(n, k) sums of the trees of every column, from its level on."""
    total = np.tile(ensemble["level"], (len(x), 1))
    for k, output in enumerate(ensemble["output"].tolist()):
        total[:, output] += ensemble["value"][k, leaf_of(ensemble, k, x)]
    return total
