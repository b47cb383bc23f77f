"""kNN: a model's score is its mean label over the nearest train questions."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Ints, Vectors
from routeyard.pipelines.matrix.ranking import draw
from routeyard.pipelines.routers.base import (
    Examples,
    Floats,
    Queries,
    listed,
    model_means,
    squared_error,
    usable,
)

#: Similarities of one block of queries with all train questions.
BLOCK_BYTES = 64 << 20


def nearest(vectors: Vectors, train: Vectors, k: int) -> tuple[Ints, Floats]:
    """(n, k) train rows by falling cosine, and the cosines; ties by row number (`settled`).

    Exact search: one blocked product. At 25,000 train questions of 384
    dimensions it takes about a second, less than building an index.
    """
    k = min(k, len(train))
    found = np.empty((len(vectors), k), dtype=np.int64)
    cosine = np.empty((len(vectors), k))
    size = max(1, BLOCK_BYTES // (4 * max(len(train), 1)))
    same = _same(train)
    for first in range(0, len(vectors), size):
        similarity = vectors[first : first + size] @ train.T
        if len(same):
            # Products of equal vectors differ in their last bit by their place.
            similarity[:, same[:, 0]] = similarity[:, same[:, 1]]
        part = np.argpartition(-similarity, k - 1, axis=1)[:, :k]
        least = np.take_along_axis(similarity, part, axis=1).min(axis=1)
        for row in np.flatnonzero((similarity >= least[:, None]).sum(axis=1) > k):
            above = np.flatnonzero(similarity[row] > least[row])
            equal = np.flatnonzero(similarity[row] == least[row])
            part[row] = np.concatenate([above, equal[: k - len(above)]])
        part.sort(axis=1)
        values = np.take_along_axis(similarity, part, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        found[first : first + size] = np.take_along_axis(part, order, axis=1)
        cosine[first : first + size] = np.take_along_axis(values, order, axis=1)
    return found, cosine


def _same(vectors: Vectors) -> Ints:
    """(d, 2) rows whose vector occurs before, and the first row that has it."""
    whole = np.ascontiguousarray(vectors)
    rows = whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1]))).ravel()
    _, first, back = np.unique(rows, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[back] != np.arange(len(rows)))
    return np.stack([again, first[back][again]], axis=1)


def settled(train: Examples) -> Examples:
    """The examples in an order that their labels decide, not their ids or positions: of equally
    near questions the first are taken."""
    return train.take(np.argsort(draw(train.labels.T), kind="stable"))


@listed
class KNN:
    """Mean label of the k nearest train questions (RouterBench, arXiv 2403.12031).

    k is chosen on the validation questions by squared error; without any the
    middle of `choices` is taken. Missing labels do not count; the model's mean
    over all train questions enters as one more neighbour, so that a model
    without any labelled neighbour keeps its mean; not so in the preset `code`.
    """

    name = "knn"
    #: Neighbours that the mean over all train questions counts as.
    weight = 1.0
    #: Whether its constants are published ones (`listed.presets`).
    as_published: bool = False

    def __init__(self, choices: tuple[int, ...] = (5, 10, 20, 40, 80, 160)):
        self.choices = choices
        if self.as_published:
            self.weight = 0.0

    def fit(self, train: Examples) -> KNN:
        train = settled(usable(train))
        self._vectors = train.queries.vectors()
        self._prior = model_means(train.labels)
        self._known = ~np.isnan(train.labels)
        self._labels = np.where(self._known, train.labels, 0.0)
        self.k = self.choices[len(self.choices) // 2]
        if train.validation is not None:
            held = train.validation
            near = nearest(held.queries.vectors(), self._vectors, max(self.choices))[0]
            self.k = min(
                self.choices,
                key=lambda k: (squared_error(self._mean(near[:, :k]), held.labels), k),
            )
        return self

    def _mean(self, near: Ints) -> Floats:
        total = np.tile(self.weight * self._prior, (len(near), 1))
        n = np.full_like(total, self.weight)
        for column in near.T:
            total += self._labels[column]
            n += self._known[column]
        return np.where(n > 0, total / np.maximum(n, 1e-300), self._prior)

    def scores(self, queries: Queries) -> Floats:
        return self._mean(nearest(queries.vectors(), self._vectors, self.k)[0])


@listed
class KNNAsPrinted(KNN):
    """The plain mean over the 5 nearest questions, nothing chosen and nothing added.

    RouterBench+, appendix E, prints kNN so and gives no k; 5 is the least that
    RouterBench's configuration tries. A model without a label among the
    neighbours keeps its overall mean.
    """

    name = "knn-as-printed"
    weight = 0.0

    def __init__(self, k: int = 5):
        super().__init__((k,))
