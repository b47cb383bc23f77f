"""Best-generalist heuristic: the model that is best on the train questions, for every query."""

from __future__ import annotations

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.matrix.memmap import allocate
from routeyard.pipelines.routers.base import Examples, Queries, listed, model_means


@listed
class BestGeneralist:
    """Scores are the models' train accuracies, the same for every query.

    Under a budget this is "the best single model one can afford", the heuristic
    that a router has to beat to have learnt anything about queries.
    """

    name = "best-generalist"

    def fit(self, train: Examples) -> BestGeneralist:
        self._means = model_means(train.labels)
        return self

    def scores(self, queries: Queries) -> Floats:
        out = allocate((len(queries), len(self._means)))
        out[...] = self._means
        return out
