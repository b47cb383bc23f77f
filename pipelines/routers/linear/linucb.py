"""LinUCB: a bandit that sees only the answer of the model it chose."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.matrix.ranking import shuffled
from routeyard.pipelines.routers.base import Examples, Queries, listed, usable
from routeyard.pipelines.routers.linear.linear_arms import LinearArms


@listed
class LinUCB:
    """LinUCB with disjoint arms (Li et al., WWW 2010).

    A_m = I + Σ x xᵀ, b_m = Σ r x over the questions on which m was chosen; choose
    argmax θ_m·x + α·sqrt(xᵀ A_m⁻¹ x), learn from that model's label alone. One pass
    over the shuffled train questions, then frozen: scores are θ_m·x (α = 0).
    The inverse is kept by the Sherman-Morrison formula. Full information replayed
    offline would be another method; this one hides what a bandit does not see, which
    is why it is below the others.

    Its result depends on the order, so its seeds are orders and five are reported.
    x is the embedding on its leading `size` principal directions with a constant
    (None: the embedding itself, d² work per arm and step). A chosen model without
    a label cannot be: only labelled ones are offered. Arms that were never chosen have one
    bound and are tried in a drawn order: in that of the columns, which is best first, what
    is to be learnt would be known before.
    """

    name = "linucb"

    def __init__(self, alpha: float = 0.5, size: int | None = 64, seed: int = 42):
        self.alpha, self.size, self.seed = alpha, size, seed

    def fit(self, train: Examples) -> LinUCB:
        train = usable(train)
        vectors = train.queries.vectors().astype(np.float64)
        self._centre = vectors.mean(axis=0)
        self._axes = np.eye(vectors.shape[1])
        if self.size is not None and self.size < vectors.shape[1]:
            covariance = np.cov((vectors - self._centre).T) if len(vectors) > 1 else self._axes
            # Largest eigenvalues last; the sign of an axis changes no score.
            self._axes = np.linalg.eigh(np.atleast_2d(covariance))[1][:, ::-1][:, : self.size]
        x = self._features(vectors)
        n, d = x.shape
        m = train.labels.shape[1]
        arms = LinearArms(m, d)
        known = ~np.isnan(train.labels)
        order = shuffled(train.labels, self.seed)
        for row in np.random.default_rng(self.seed).permutation(n):
            now = x[row]
            bound = np.where(known[row], arms.bounds(now, self.alpha), -np.inf)
            arm = int(order[np.argmax(bound[order])])
            arms.learn(now, arm, train.labels[row, arm])
        self._theta = arms.theta
        return self

    def _features(self, vectors: Floats) -> Floats:
        x = (vectors - self._centre) @ self._axes
        # The length of a centred embedding is small against the constant: same scale.
        return np.column_stack([x * np.sqrt(10.0), np.ones(len(x))])

    def scores(self, queries: Queries) -> Floats:
        return np.asarray(self._features(queries.vectors().astype(np.float64)) @ self._theta.T)
