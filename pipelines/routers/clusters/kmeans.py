"""K-means: a model's score is its mean label in the question's cluster."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Ints, Vectors
from routeyard.pipelines.routers.base import (
    Examples,
    Floats,
    Queries,
    listed,
    model_means,
    squared_error,
    usable,
)


@listed
class KMeansRouter:
    """Cluster means of labels (Universal Model Routing, arXiv 2502.08773).

    The number of clusters is chosen on the validation questions by squared
    error. A cluster's mean is drawn towards the model's overall mean as if one
    more question of that mean were in it.
    """

    name = "kmeans"
    #: Questions that a model's overall mean counts as in every cluster.
    weight = 1.0

    def __init__(self, choices: tuple[int, ...] = (4, 8, 16, 32, 64, 128), seed: int = 0):
        self.choices = choices
        self.seed = seed

    def fit(self, train: Examples) -> KMeansRouter:
        held = train.validation
        train = usable(train)
        distinct = len(np.unique(train.queries.vectors(), axis=0))
        choices = [k for k in self.choices if k <= distinct] or [distinct]
        if held is None:
            choices = [choices[len(choices) // 2]]
        best = float("inf")
        for k in choices:
            centres, means = self._clusters(train, k)
            error = 0.0
            if held is not None:
                predicted = means[closest(held.queries.vectors(), centres)]
                error = squared_error(predicted, held.labels)
            if not error >= best:
                best, self.k, self._centres, self._means = error, k, centres, means
        return self

    def _clusters(self, train: Examples, k: int) -> tuple[Vectors, Floats]:
        labels, centres = clustered(train.queries.vectors(), k, self.seed)
        known = ~np.isnan(train.labels)
        member = np.zeros((k, len(labels)))
        member[labels, np.arange(len(labels))] = 1.0
        prior = model_means(train.labels)
        total = member @ np.where(known, train.labels, 0.0) + self.weight * prior
        n = member @ known + self.weight
        return centres, np.where(n > 0, total / np.maximum(n, 1e-300), prior)

    def scores(self, queries: Queries) -> Floats:
        return np.asarray(self._means[closest(queries.vectors(), self._centres)])


class KMeansAsPrinted(KMeansRouter):
    """Plain cluster means (RouterBench+, appendix E); without a label there, the overall mean."""

    name = "kmeans-as-printed"
    weight = 0.0


def clustered(vectors: Vectors, k: int, seed: int, restarts: int = 1) -> tuple[Ints, Vectors]:
    """(n,) cluster of every question and (k, d) centres, by K-means, the best of `restarts`."""
    from sklearn.cluster import KMeans

    fitted = KMeans(n_clusters=k, n_init=restarts, max_iter=50, random_state=seed).fit(vectors)
    return fitted.labels_.astype(np.int64), fitted.cluster_centers_.astype(np.float32)


def closest(vectors: Vectors, centres: Vectors) -> Ints:
    """Euclidean nearest centre; |v|² is the same for all and left out."""
    return np.asarray(np.argmin((centres**2).sum(axis=1) - 2 * vectors @ centres.T, axis=1))
