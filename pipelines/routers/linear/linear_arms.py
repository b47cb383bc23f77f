"""Ridge regressions of rewards on features, one for each arm, learnt one answer at a time."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats


class LinearArms:
    """A_m = I + Σ x xᵀ, b_m = Σ r x, θ_m = A_m⁻¹ b_m, for m arms and d features.

    The inverse is kept by the Sherman-Morrison formula (Li et al., WWW 2010, disjoint LinUCB).
    """

    def __init__(self, arms: int, features: int) -> None:
        self._inverse = np.tile(np.eye(features), (arms, 1, 1))
        self._moment = np.zeros((arms, features))
        self.theta = np.zeros((arms, features))

    def bounds(self, x: Floats, alpha: float) -> Floats:
        """(m,) θ_m·x + α·sqrt(xᵀ A_m⁻¹ x), rounded: equal rows differ in their last bit by
        their place."""
        spread = self._inverse @ x
        bound = self.theta @ x + alpha * np.sqrt(np.maximum(spread @ x, 0.0))
        return np.asarray(np.round(bound, 12))

    def learn(self, x: Floats, arm: int, reward: float) -> None:
        """One answer of one arm."""
        toward = self._inverse[arm] @ x
        self._inverse[arm] -= np.outer(toward, toward) / (1 + toward @ x)
        self._moment[arm] += reward * x
        self.theta[arm] = self._inverse[arm] @ self._moment[arm]
