"""Thompson sampling: a model's accuracy drawn from what train questions leave open of it."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.routers.base import Examples, Queries, listed, usable
from routeyard.pipelines.routers.references.uniform import UniformRandom


@listed
class Thompson:
    """Beta(1 + hits, 1 + misses) per model, drawn anew for every question.

    CSCR's baseline (section 4.1), which knows nothing of the question: its published code
    draws from the posterior and takes λ·cost off. Hits and misses are sums of labels, so a
    label between 0 and 1 counts in parts. A question's draws depend on the seed, its id
    and the model alone.
    """

    name = "thompson"

    def __init__(self, seed: int = 0):
        self.seed = seed

    def fit(self, train: Examples) -> Thompson:
        train = usable(train)
        self._draws = UniformRandom(self.seed).fit(train)._salt
        self._hits = 1 + np.nansum(train.labels, axis=0)
        self._misses = 1 + np.nansum(1 - train.labels, axis=0)
        return self

    def scores(self, queries: Queries) -> Floats:
        from scipy.stats import beta

        uniform = UniformRandom(self.seed)
        uniform._salt = self._draws
        return np.asarray(beta.ppf(uniform.scores(queries), self._hits, self._misses))
