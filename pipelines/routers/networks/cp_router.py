"""CP-Router: a conformal set of models that may be right; the cheapest of them is asked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Array, Bools, Floats, Ints
from routeyard.pipelines.routers.base import Examples, listed
from routeyard.pipelines.routers.networks.trained import Trained

#: Error rates that are tried.
ALPHAS = tuple(round(0.01 * k, 2) for k in range(1, 100))


@listed
class CPRouter(Trained):
    """CP-Router (Su et al., arXiv 2505.19970), from a pair to a pool.

    The paper's task: a cheap model's option probabilities on a multiple-choice
    question give a conformal set of answers; one answer in it means the cheap model
    suffices. α is the one that maximises FBE = β·H_full + H_binary of the set
    sizes, β = 3. It needs the cheap model's token probabilities at routing time.

    From the question alone, and for M models: a predictor of correctness (cross-
    entropy per model); nonconformity 1 − p̂ of the correct (question, model) cells
    of the validation questions; a model is in the set where 1 − p̂ is within their
    ⌈(n+1)(1−α)⌉/n quantile. `floor` is 1 minus that quantile: the selection rule
    `sufficient:FLOOR` takes the cheapest model of each set, and the highest score
    where a set is empty. The scores are the predictor's, so without regard to cost
    the rule is argmax, as the plateau study's table has it. α is chosen on validation;
    the published procedure takes the (unlabelled) test questions for it.
    """

    name = "cp-router"

    def settle(self, network: Any, train: Examples) -> None:
        super().settle(network, train)
        held = train.validation or train
        p = self.scores(held.queries)
        right = np.nan_to_num(held.labels, nan=0.0) >= 0.5
        self.alpha, self.quantile = best_alpha(1 - p, right, self.settings["beta"])

    @property
    def floor(self) -> float:
        """Least score of a model in the conformal set; 0 where the set holds every model."""
        return max(0.0, 1 - self.quantile)

    def arrays(self) -> dict[str, Array]:
        return {**super().arrays(), "conformal": np.array([self.alpha, self.quantile])}

    def restore(self, arrays: Any) -> CPRouter:
        self.alpha, self.quantile = (float(v) for v in arrays["conformal"])
        super().restore(arrays)
        return self


def conformal_quantile(nonconformity: Floats, alpha: float) -> float:
    """The ⌈(n+1)(1−α)⌉-th smallest value; infinity where n is too small for α.

    >>> conformal_quantile(np.array([0.1, 0.2, 0.3, 0.4]), 0.2)
    0.4
    >>> conformal_quantile(np.array([0.1]), 0.1)
    inf
    """
    n = len(nonconformity)
    # Rounded: (n + 1)·(1 − α) of 4.000000001 is 4.
    rank = math.ceil(round((n + 1) * (1 - alpha), 9))
    return float("inf") if rank > n else float(np.sort(nonconformity)[max(rank, 1) - 1])


def best_alpha(
    nonconformity: Floats, right: Bools, beta: float, alphas: tuple[float, ...] = ALPHAS
) -> tuple[float, float]:
    """(α, quantile) with the largest FBE = β·H(set size) + H(set of one or not); first of equals.

    Args:
        nonconformity: (n, m) 1 − p̂ on calibration questions.
        right: (n, m) correct cells; without any the sets hold everything.
    """
    calibration = nonconformity[right]
    if not len(calibration):
        return alphas[0], float("inf")
    best = (-1.0, alphas[0], float("inf"))
    for alpha in alphas:
        limit = conformal_quantile(calibration, alpha)
        sizes = (nonconformity <= limit).sum(axis=1)
        full = entropy(np.bincount(sizes))
        one = int((sizes == 1).sum())
        value = beta * full + entropy(np.array([one, len(sizes) - one]))
        if value > best[0] + 1e-12:
            best = (value, alpha, limit)
    return best[1], best[2]


def entropy(counts: Ints) -> float:
    """Shannon entropy in bits of counts."""
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log2(p)).sum()) + 0.0
