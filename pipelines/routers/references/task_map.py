"""Task map: the best model of every task, the least a router has to beat."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.matrix.memmap import allocate
from routeyard.pipelines.matrix.row_blocks import distinct, sums_of
from routeyard.pipelines.routers.base import Examples, Queries, listed, model_means, usable


@listed
class TaskMap:
    """A model's score is its mean label on the question's task in train.

    Nothing is read off the question but the name of its task, so what a router
    gains over it is what it knows about questions. A task that train lacks gets
    the overall means; the mean of a task is drawn towards them as if `prior` more
    questions of that mean were in it.
    """

    name = "task-map"

    def __init__(self, prior: float = 1.0):
        self.prior = prior

    def fit(self, train: Examples) -> TaskMap:
        train = usable(train)
        self._overall = model_means(train.labels)
        labels, tasks = train.labels, train.queries.tasks
        self._tasks = distinct(tasks)
        means = []
        for task in self._tasks:
            at = np.flatnonzero(tasks == task)
            total = sums_of(lambda rows: np.nan_to_num(labels[rows]), at)
            n = sums_of(lambda rows: ~np.isnan(labels[rows]), at)
            means.append((total + self.prior * self._overall) / (n + self.prior))
        self._means = np.array(means)
        return self

    def scores(self, queries: Queries) -> Floats:
        found = allocate((len(queries), len(self._overall)))
        found[...] = self._overall
        for position, task in enumerate(self._tasks):
            found[queries.tasks == task] = self._means[position]
        return found
