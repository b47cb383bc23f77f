"""What a router is measured against: chance, the best single model, the best of each task.

Read `BestGeneralist` first.
"""

from __future__ import annotations

import hashlib

import numpy as np

from routeyard.pipelines.common.arrays import (
    Bools,
    Floats,
    allocate,
    blocks,
    by_rows,
    distinct,
    sums_of,
)
from routeyard.pipelines.common.matrix import Examples, Queries
from routeyard.pipelines.routers.base import mean_cost, model_means, usable
from routeyard.pipelines.routers.listed import listed

# Best-generalist heuristic: the model that is best on the train questions, for every query.

#: Labels that a model's lead on the others is worth as much as none: with fewer it counts less.
PRIOR = 10


@listed
class BestGeneralist:
    """Scores are the models' train accuracies, the same for every query.

    Under a budget this is "the best single model one can afford", the heuristic
    that a router has to beat to have learnt anything about queries. Missing labels of a model are
    filled in, so that few labels of easy questions make no model the best.
    """

    name = "best-generalist"

    def fit(self, train: Examples) -> BestGeneralist:
        self._means = imputed_means(train.labels)
        return self

    def scores(self, queries: Queries) -> Floats:
        out = allocate((len(queries), len(self._means)))
        out[...] = self._means
        return out


def imputed_means(labels: Floats) -> Floats:
    """(m,) mean label of every model over all questions that any model has a label for.

    A missing label is taken for the mean of the other models on the question plus the model's lead
    on them where it has labels, shrunk by `PRIOR` labels without a lead: missing at random, given
    how hard a question is. Without missing labels these are the plain means.
    """
    means = model_means(labels)
    total = by_rows(lambda part: np.nansum(part, axis=1), labels)
    n = by_rows(lambda part: np.count_nonzero(~np.isnan(part), axis=1), labels)
    asked = np.flatnonzero(n)
    total, n = total[asked], n[asked]
    for k in range(labels.shape[1] if len(asked) else 0):
        own = np.asarray(labels[asked, k])
        known = ~np.isnan(own)
        if known.all():
            continue
        others = n - known
        compared = known & (others > 0)
        # The other models' mean on a question; the mean of all where nobody else has a label.
        rest = np.where(others > 0, (total - np.nan_to_num(own)) / np.maximum(others, 1), means[k])
        lead = np.sum(own[compared] - rest[compared]) / (compared.sum() + PRIOR)
        means[k] = np.mean(np.where(known, own, np.clip(rest + lead, 0, 1)))
    return means


# Task map: the best model of every task, the least a router has to beat.


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
        result = allocate((len(queries), len(self._overall)))
        result[...] = self._overall
        for position, task in enumerate(self._tasks):
            result[queries.tasks == task] = self._means[position]
        return result


# Uniform random choice.


@listed
class UniformRandom:
    """Scores drawn uniformly from [0, 1) by query, so that their order is random.

    Each query's scores depend on the seed and its id alone: the same query gets
    the same choice whichever others are asked with it.
    """

    name = "random"

    def __init__(self, seed: int = 0):
        self.seed = seed

    def fit(self, train: Examples) -> UniformRandom:
        # Scores belong to model ids, not positions: pool order must not matter.
        self._salt = [f"{self.seed}:{name}:".encode() for name in train.model_ids]
        return self

    def scores(self, queries: Queries) -> Floats:
        return self.drawn(queries)

    def drawn(self, queries: Queries) -> Floats:
        """(n, m) numbers in [0, 1), of each question and model by the seed alone."""
        out = allocate((len(queries), len(self._salt)))
        for part in blocks(len(queries)):
            ids = [query.encode() for query in queries.query_ids[part]]
            for column, salt in enumerate(self._salt):
                digests = b"".join(
                    hashlib.blake2b(salt + query, digest_size=8).digest() for query in ids
                )
                out[part, column] = np.frombuffer(digests, dtype="<u8") / 2.0**64
        return out


# Pareto-random: a random model among those that no other beats in accuracy and cost.


@listed
class ParetoRandom(UniformRandom):
    """Uniform over the models on the cost-accuracy frontier of the train questions.

    CSCR's baseline "Pareto-optimal routing" (section 4.1), after RouterBench. Without
    known costs the frontier is the most accurate model alone.
    """

    name = "pareto-random"

    def fit(self, train: Examples) -> ParetoRandom:
        train = usable(train)
        super().fit(train)
        cost = mean_cost(train)
        level = np.zeros(len(train.model_ids)) if cost is None else cost
        self._front = on_frontier(model_means(train.labels), level)
        return self

    def scores(self, queries: Queries) -> Floats:
        # Draws lie in [0, 1): a model off the frontier is below all that are on it.
        return np.where(self._front, 1.0, 0.0) + self.drawn(queries)


def on_frontier(accuracy: Floats, cost: Floats) -> Bools:
    """(m,) models such that no other is at least as good and as cheap, and better in one.

    >>> on_frontier(np.array([0.9, 0.5, 0.4]), np.array([3.0, 1.0, 2.0])).tolist()
    [True, True, False]
    """
    as_good = accuracy[None, :] >= accuracy[:, None]
    as_cheap = cost[None, :] <= cost[:, None]
    better = (accuracy[None, :] > accuracy[:, None]) | (cost[None, :] < cost[:, None])
    return np.asarray(~np.any(as_good & as_cheap & better, axis=1))


# Thompson sampling: a model's accuracy drawn from what train questions leave open of it.


@listed
class Thompson(UniformRandom):
    """Beta(1 + hits, 1 + misses) per model, drawn anew for every question.

    CSCR's baseline (section 4.1), which knows nothing of the question: its published code
    draws from the posterior and takes λ·cost off. Hits and misses are sums of labels, so a
    label between 0 and 1 counts in parts. A question's draws depend on the seed, its id
    and the model alone.
    """

    name = "thompson"

    def fit(self, train: Examples) -> Thompson:
        train = usable(train)
        super().fit(train)
        self._hits = 1 + np.nansum(train.labels, axis=0)
        self._misses = 1 + np.nansum(1 - train.labels, axis=0)
        return self

    def scores(self, queries: Queries) -> Floats:
        from scipy.stats import beta

        return np.asarray(beta.ppf(self.drawn(queries), self._hits, self._misses))
