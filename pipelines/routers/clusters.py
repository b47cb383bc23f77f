"""Routers that average labels within clusters or tags: K-means, Avengers-Pro, TagRouter.

Read `KMeansRouter` first.
"""

from __future__ import annotations

import warnings

import numpy as np

from routeyard.pipelines.common.arrays import Array, Floats, Ints, Vectors, ranked
from routeyard.pipelines.common.matrix import Examples, Queries
from routeyard.pipelines.routers.base import (
    mean_cost,
    model_means,
    squared_error,
    strongest,
    usable,
)
from routeyard.pipelines.routers.listed import listed

# K-means: a model's score is its mean label in the question's cluster.


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
        member, centres = clustered(train.queries.vectors(), k, self.seed)
        return centres, means_in(member, train.labels, k, model_means(train.labels), self.weight)

    def scores(self, queries: Queries) -> Floats:
        return np.asarray(self._means[closest(queries.vectors(), self._centres)])


class KMeansAsPrinted(KMeansRouter):
    """Plain cluster means (RouterBench+, appendix E); without a label there, the overall mean."""

    name = "kmeans-as-printed"
    weight = 0.0


def clustered(vectors: Vectors, k: int, seed: int, restarts: int = 1) -> tuple[Ints, Vectors]:
    """(n,) cluster of every question and (k, d) centres, by K-means, the best of `restarts`."""
    from sklearn.cluster import KMeans

    # Questions that repeat each other leave clusters empty, which have no say in any score.
    warnings.filterwarnings("ignore", "Number of distinct clusters")
    fitted = KMeans(n_clusters=k, n_init=restarts, max_iter=50, random_state=seed).fit(vectors)
    return fitted.labels_.astype(np.int64), fitted.cluster_centers_.astype(np.float32)


def at_most(k: int, vectors: Vectors, seed: int, restarts: int = 1) -> tuple[Ints, Vectors]:
    """`clustered`, with no more clusters than distinct questions."""
    return clustered(vectors, min(k, len(np.unique(vectors, axis=0))), seed, restarts)


def sums_in(member: Ints, values: Floats, k: int) -> tuple[Floats, Floats]:
    """(k, m) sums of the known values in every cluster, and how many they are."""
    at: Array = np.zeros((k, len(member)))
    at[member, np.arange(len(member))] = 1.0
    known = ~np.isnan(values)
    return at @ np.where(known, values, 0.0), at @ known


def means_in(member: Ints, values: Floats, k: int, prior: Floats | float, weight: float) -> Floats:
    """(k, m) means of the known values in every cluster, `prior` counting as `weight` more of
    them; `prior` where nothing is known."""
    total, n = sums_in(member, values, k)
    total, n = total + weight * prior, n + weight
    return np.where(n > 0, total / np.maximum(n, 1e-300), prior)


def closest(vectors: Vectors, centres: Vectors) -> Ints:
    """Euclidean nearest centre; |v|² is the same for all and left out."""
    return np.asarray(np.argmin((centres**2).sum(axis=1) - 2 * vectors @ centres.T, axis=1))


# Avengers-Pro: performance and efficiency of the nearest clusters, softly weighted.


@listed
class AvengersPro:
    """Avengers-Pro (Zhang et al., "Beyond GPT-5", DAI 2025).

    Task: rank models per cluster. K-means of the train questions (published: 25);
    of a question the `near` closest clusters (3), weighted by softmax(−β·distance)
    with β = 9 and distance 1 − e·centre (centres are not normalised again).

    Default score: the weighted mean of the clusters' mean labels, a probability, so
    that cost is a selection rule's business. Presets `text` and `code`: in each cluster
    performance is min-max scaled over models and efficiency is 1 − cost/greatest
    cost, x = α·performance + (1−α)·efficiency, and what is summed is the weighted
    *reciprocal rank* of x, 1/(rank + 1). Ranks throw away how far models are apart.
    Published code counts an unknown cost as 0; here α < 1 with unknown cost is
    refused.
    """

    name = "avengers-pro"
    #: Whether its constants are published ones (`listed.presets`).
    as_published: bool = False

    def __init__(
        self,
        clusters: int = 25,
        near: int = 3,
        beta: float = 9.0,
        alpha: float = 1.0,
        restarts: int = 1,
        seed: int = 42,
    ):
        self.clusters, self.near, self.beta, self.alpha = clusters, near, beta, alpha
        self.restarts, self.seed = restarts, seed

    def fit(self, train: Examples) -> AvengersPro:
        train = usable(train)
        member, self._centres = at_most(
            self.clusters, train.queries.vectors(), self.seed, self.restarts
        )
        # One answer at the model's mean keeps small clusters from extremes; not published.
        weight = 0 if self.as_published else 1
        prior = model_means(train.labels)
        self._means = means_in(member, train.labels, len(self._centres), prior, weight)
        if self.as_published:
            self._means = self._ranked(train)
        return self

    def _ranked(self, train: Examples) -> Floats:
        """(k, m) reciprocal ranks of performance and efficiency."""
        low, high = self._means.min(axis=1), self._means.max(axis=1)
        spread = (high - low)[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            performance = np.where(spread > 0, (self._means - low[:, None]) / spread, 1.0)
        worth = self.alpha * performance
        if self.alpha < 1:
            cost = mean_cost(train)
            if cost is None:
                from routeyard.schemas.errors import BadInput

                raise BadInput(
                    "Avengers-Pro with α < 1 needs costs, and none is known for all models",
                    next_step="set alpha=1, or give the release prices",
                )
            worth = worth + (1 - self.alpha) * (1 - cost / max(float(cost.max()), 1e-300))
        first = ranked(train.labels, mean_cost(train))
        rank = np.empty(worth.shape)
        rank[:, first] = np.argsort(np.argsort(-worth[:, first], axis=1, kind="stable"), axis=1)
        return 1.0 / (rank + 1)

    def scores(self, queries: Queries) -> Floats:
        distance = 1 - queries.vectors().astype(np.float64) @ self._centres.T
        near = np.argsort(distance, axis=1, kind="stable")[:, : self.near]
        closest = np.take_along_axis(distance, near, axis=1)
        weight = np.exp(-self.beta * (closest - closest[:, :1]))
        weight /= weight.sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("nk,nkm->nm", weight, self._means[near]))


# TagRouter: a model's worth is summed over the tags of the question.


@listed
class TagRouter:
    """TagRouter (ACL 2025, arXiv 2506.12473), with the tags a release has.

    Task: choose by tags. A tag's score for a model is its mean result against the
    reference, the most accurate model of train: win 1, loss −1, a tie `tie` (0).
    A question's score is the weighted sum over its tags. Rule: the cheaper model
    unless it is behind by more than θ.

    The paper's tags come from a fine-tuned generator. Here they are the task of
    the question and its clusters at two grains. A tag weighs by how often it was
    seen, n/(n + `prior`), since rare tags say little. The plateau study lists Fly-swat
    or Cannon under this name; that router is `fly-swat`.
    """

    name = "tag-router"

    def __init__(
        self,
        grains: tuple[int, ...] = (8, 32),
        tie: float = 0.0,
        prior: float = 5.0,
        seed: int = 42,
    ):
        self.grains, self.tie, self.prior, self.seed = tuple(grains), tie, prior, seed

    def fit(self, train: Examples) -> TagRouter:
        train = usable(train)
        gap = train.labels - train.labels[:, [strongest(train)]]
        result = np.where(gap == 0, self.tie, np.sign(gap))
        whole = sums_in(np.zeros(len(gap), np.int64), result, 1)
        self._overall = whole[0][0] / np.maximum(whole[1][0], 1)
        self._tasks, of_task = np.unique(train.queries.tasks, return_inverse=True)
        self._centres: list[Vectors] = []
        tags = [(of_task.astype(np.int64), len(self._tasks))]
        for grain in self.grains:
            member, centres = at_most(grain, train.queries.vectors(), self.seed)
            self._centres.append(centres)
            tags.append((member, len(centres)))
        sums = [sums_in(member, result, k) for member, k in tags]
        # Of each tag: how far each model is from its overall score, weighted.
        self._scores = [(total - n * self._overall) / (n + self.prior) for total, n in sums]
        return self

    def scores(self, queries: Queries) -> Floats:
        means = np.tile(self._overall, (len(queries), 1))
        share = 1 / len(self._scores)
        for position, task in enumerate(self._tasks):
            means[queries.tasks == task] += share * self._scores[0][position]
        for centres, scores in zip(self._centres, self._scores[1:], strict=True):
            means += share * scores[closest(queries.vectors(), centres)]
        return means


# UMR: a model is its errors in clusters of questions, measured on validation questions.


@listed
class UMR:
    """Universal model routing with cluster footprints, as CSCR takes it for a baseline.

    K-means of the train questions (K = 20 in CSCR's code); Ψ_mk is the mean error of model m
    on the validation questions of cluster k, 0.5 where it has no label there; the score is
    1 − Ψ of the question's cluster, the rule argmin Ψ + λ·cost. Without validation
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
        self._centres = at_most(self.k, train.queries.vectors(), self.seed)[1]
        judged = train if held is None or np.all(np.isnan(held.labels)) else held
        at = closest(judged.queries.vectors(), self._centres)
        self._errors = means_in(at, 1 - judged.labels, len(self._centres), 0.5, 0)
        return self

    def scores(self, queries: Queries) -> Floats:
        vectors = queries.vectors()
        if self.as_published:
            length = np.linalg.norm(self._centres, axis=1, keepdims=True)
            unit = self._centres / np.where(length > 0, length, 1)
            at = np.argmax(vectors @ unit.T, axis=1)
        else:
            at = closest(vectors, self._centres)
        return np.asarray(1 - self._errors[at])
