"""UMR: a model is its errors in clusters of questions, measured on validation questions."""

from __future__ import annotations

import copy

import numpy as np

from routeyard.pipelines.arrays import Array, Floats, Ints
from routeyard.pipelines.routers.base import Examples, Queries, listed, usable
from routeyard.pipelines.routers.clusters.kmeans import closest, clustered


@listed
class UMR:
    """Universal model routing with cluster footprints, as CSCR takes it for a baseline.

    K-means of the train questions (K = 20 in CSCR's code); Ψ_mk is the mean error of model m
    on the validation questions of cluster k, 0.5 where it has no label there; the score is
    1 − Ψ of the question's cluster, the rule argmin Ψ + λ·cost. A new model needs its
    errors on the validation questions and nothing else: `with_models`. Without validation
    questions the train questions take their place.

    `kmeans` chooses K and draws small clusters towards the mean; this one does neither.
    The code that CSCR published assigns validation questions by Euclidean distance and
    asked ones by cosine to normalised centres (preset `code`); here both go by distance.
    """

    name = "umr"
    #: Whether its constants are published ones (`listed.presets`).
    as_published: bool = False

    def __init__(self, k: int = 20, seed: int = 42):
        self.k, self.seed = k, seed

    def fit(self, train: Examples) -> UMR:
        held = train.validation
        train = usable(train)
        vectors = train.queries.vectors()
        k = min(self.k, len(np.unique(vectors, axis=0)))
        self._centres = clustered(vectors, k, self.seed)[1]
        judged = train if held is None or np.all(np.isnan(held.labels)) else held
        at = closest(judged.queries.vectors(), self._centres)
        self._errors = errors_in(at, judged.labels, k)
        return self

    def scores(self, queries: Queries) -> Floats:
        vectors = queries.vectors()
        if self.as_published:
            length = np.linalg.norm(self._centres, axis=1, keepdims=True)
            unit = self._centres / np.where(length > 0, length, 1)
            at = np.argmax(vectors @ unit.T, axis=1)
        else:
            at = closest(vectors, self._centres)
        return np.asarray(1 - self._errors[:, at].T)

    def with_models(self, validation: Examples) -> UMR:
        """The same router with more models, known by their labels on validation questions."""
        more = copy.copy(self)
        at = closest(validation.queries.vectors(), self._centres)
        new = errors_in(at, validation.labels, len(self._centres))
        more._errors = np.concatenate([self._errors, new])
        return more


def errors_in(cluster: Ints, labels: Floats, k: int) -> Floats:
    """(m, k) mean of 1 − label in every cluster; 0.5 where a model has no label there."""
    known = ~np.isnan(labels)
    member: Array = np.zeros((len(labels), k))
    member[np.arange(len(labels)), cluster] = 1.0
    n = known.T.astype(np.float64) @ member
    wrong = np.where(known, 1 - labels, 0.0).T @ member
    return np.where(n > 0, wrong / np.maximum(n, 1), 0.5)
