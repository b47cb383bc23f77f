"""Expected outcome of each arm, for the doubly robust estimate."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints


def expected_rewards(
    features: Floats,
    arm: Ints,
    reward: Floats,
    task: Ints,
    arms: int,
    *,
    folds: int = 5,
    ridge: float = 1.0,
    seed: int = 0,
) -> Floats:
    """(n, arms) predictions of a ridge regression per arm, cross-fitted over tasks.

    A decision is predicted by a fit that saw none of its task, so that the doubly robust estimate
    stays unbiased (cross-fitting, as in double machine learning). An arm without outcomes in a fit
    gets the mean of all.

    Args:
        features: (n, d); a column of ones is added.
        reward: (n,); NaN is not learned from.
    """
    codes = np.unique(task, return_inverse=True)[1]
    fold = np.random.default_rng(seed).integers(0, folds, codes.max(initial=-1) + 1)[codes]
    inputs = np.column_stack([np.ones(len(arm)), features])
    penalty = ridge * np.eye(inputs.shape[1])
    penalty[0, 0] = 0
    found = np.empty((len(arm), arms))
    known = ~np.isnan(reward)
    for one in range(folds):
        held, learned = fold == one, (fold != one) & known
        mean = float(reward[learned].mean()) if learned.any() else 0.0
        for number in range(arms):
            own = learned & (arm == number)
            if not own.any():
                found[held, number] = mean
                continue
            x = inputs[own]
            weights = np.linalg.lstsq(x.T @ x + penalty, x.T @ reward[own], rcond=None)[0]
            found[held, number] = inputs[held] @ weights
    return found
