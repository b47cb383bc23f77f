"""Routers that look at the nearest train questions: kNN, CARROT, Eagle.

Read `KNN` first; the others take their neighbours from it.
"""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.common.arrays import Array, Floats, Ints, Vectors, draw
from routeyard.pipelines.common.matrix import Examples, Queries
from routeyard.pipelines.routers.base import in_blocks, model_means, squared_error, usable
from routeyard.pipelines.routers.listed import listed

# kNN: a model's score is its mean label over the nearest train questions.

#: Similarities of one block of queries with all train questions.
BLOCK_BYTES = 64 << 20


def nearest(vectors: Vectors, train: Vectors, k: int) -> tuple[Ints, Floats]:
    """(n, k) train rows by falling cosine, and the cosines; ties by row number (`settled`).

    Exact search: one blocked product. At 25,000 train questions of 384
    dimensions it takes about a second, less than building an index.
    """
    k = min(k, len(train))
    result = np.empty((len(vectors), k), dtype=np.int64)
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
        result[first : first + size] = np.take_along_axis(part, order, axis=1)
        cosine[first : first + size] = np.take_along_axis(values, order, axis=1)
    return result, cosine


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
        self._vectors, self._labels = train.queries.vectors(), train.labels
        self._prior = model_means(train.labels)
        self.k = self.choices[len(self.choices) // 2]
        if (held := train.validation) is not None:
            means = self._means(held.queries, self.choices)
            self.k = min(self.choices, key=lambda k: (squared_error(means[k], held.labels), k))
        return self

    def _means(self, queries: Queries, choices: tuple[int, ...]) -> dict[int, Floats]:
        near = nearest(queries.vectors(), self._vectors, max(choices))[0]
        return means_at(self._labels, near, self._prior, choices, self.weight)

    def scores(self, queries: Queries) -> Floats:
        return self._means(queries, (self.k,))[self.k]


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


# CARROT: score and cost of every model, both from the nearest train questions.

#: Neighbours that the published code tries.
CHOICES = (2, 4, 8, 16, 32, 64, 128, 256, 512)


@listed
class Carrot:
    """CARROT (Somerstep et al., arXiv 2502.03261), its kNN form.

    Task: expected score of each model, the mean over k neighbours by cosine; k is chosen by
    ROC-AUC of the scores in `folds`-fold cross-validation on train (published: five). Rule:
    argmax (1−λ)·p̂ − λ·ĉ with the cost in dollars, not scaled (`evaluate`'s scaling `none`).

    The published ĉ is price × predicted output length; here it is the mean cost on train. The
    RoBERTa form fine-tunes an encoder and is not here.
    """

    name = "carrot"
    #: Whether its constants are published ones (`listed.presets`).
    as_published: bool = False

    def __init__(self, choices: tuple[int, ...] = CHOICES, folds: int = 5):
        self.choices, self.folds = choices, folds
        #: Neighbours that the mean over all train questions counts as.
        self.weight = 0.0 if self.as_published else 1.0

    def fit(self, train: Examples) -> Carrot:
        train = settled(usable(train))
        self._vectors = train.queries.vectors()
        self._labels = train.labels
        self._prior = model_means(train.labels)
        self.k = self._chosen()
        return self

    def _chosen(self) -> int:
        n = len(self._labels)
        if n < self.folds or len(self.choices) == 1:
            return min(self.choices[0], n)
        fold = np.random.default_rng(42).permutation(n) % self.folds
        predicted = {k: np.empty_like(self._labels) for k in self.choices}
        for f in range(self.folds):
            held, rest = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
            near = nearest(self._vectors[held], self._vectors[rest], max(self.choices))[0]
            result = means_at(self._labels, rest[near], self._prior, self.choices, self.weight)
            for k, means in result.items():
                predicted[k][held] = means
        worth = {k: mean_auc(predicted[k], self._labels) for k in self.choices}
        return max(self.choices, key=lambda k: (worth[k], -k))

    def scores(self, queries: Queries) -> Floats:
        near = nearest(queries.vectors(), self._vectors, self.k)[0]
        return means_at(self._labels, near, self._prior, (self.k,), self.weight)[self.k]


def means_at(
    values: Floats, near: Ints, prior: Floats, counts: tuple[int, ...], weight: float
) -> dict[int, Floats]:
    """k → (n, m) mean of known values over the first k neighbours, the prior as `weight` more."""
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    total = np.tile(weight * prior, (len(near), 1))
    n = np.full((len(near), values.shape[1]), weight)
    means = {}
    for position, column in enumerate(near.T, 1):
        total += filled[column]
        n += known[column]
        if position in counts:
            means[position] = np.where(n > 0, total / np.maximum(n, 1e-300), prior)
    for k in counts:  # more neighbours than questions: all of them
        means.setdefault(k, np.where(n > 0, total / np.maximum(n, 1e-300), prior))
    return means


def mean_auc(predicted: Floats, labels: Floats) -> float:
    """Mean ROC-AUC over the models that have right and wrong answers; 0.5 without any."""
    from scipy.stats import rankdata

    items = []
    for column in range(labels.shape[1]):
        known = ~np.isnan(labels[:, column])
        right = labels[known, column] >= 0.5
        n = int(right.sum())
        if 0 < n < len(right):
            # Wins of right over wrong answers, a tie counted half, among all their pairs.
            won = rankdata(predicted[known, column])[right].sum() - n * (n + 1) / 2
            items.append(won / (n * (len(right) - n)))
    return float(np.mean(items)) if items else 0.5


# Who beat whom on many questions at once: counts of wins as products of indicators.
#
# The wins of model i over model j on a question, 1 for a better label and ½ for a tie, are
# Σ_v 1[y_i = v] · (1[y_j < v] + ½·1[y_j = v]) over the values v of the labels. Labels with few
# values, such as right and wrong, need one matrix product for any set of questions, where a
# table per question has m² cells.

#: Most distinct labels that are counted by products.
MOST = 8
#: Questions whose tables are made at once where labels have more values.
BLOCK = 512


class Wins:
    """Wins between the models on the questions of one label matrix.

    Args:
        labels: (n, m), NaN where unknown; an unknown label neither wins nor loses.
    """

    def __init__(self, labels: Floats):
        self._labels = labels
        values = np.unique(labels[~np.isnan(labels)])
        self._by_value = len(values) <= MOST
        if self._by_value:
            equal = (labels[:, None, :] == values[None, :, None]).astype(np.float32)
            #: (n, v, m) each; counts of halves below 2^23 are exact in float32.
            self._own = equal
            self._below = np.cumsum(equal, axis=1) - equal / 2

    def total(self) -> Floats:
        """(m, m) over all questions."""
        n, m = self._labels.shape
        out = np.zeros((m, m))
        for first in range(0, n, BLOCK):
            out += self.among(np.arange(first, min(first + BLOCK, n))[None])[0]
        return out

    def among(self, rows: Ints) -> Floats:
        """(q, m, m) over the questions `rows` (q, k) of each of q sets."""
        q, m = len(rows), self._labels.shape[1]
        if not self._by_value:
            out = np.zeros((q, m, m))
            for column in rows.T:
                out += results(self._labels[column])
            return out
        own, below = (a[rows].reshape(q, -1, m) for a in (self._own, self._below))
        return _hollow(np.matmul(own.transpose(0, 2, 1), below).astype(np.float64))

    def joined(self, member: Ints, groups: int) -> Vectors:
        """(n, groups, groups) wins between groups of models on every question.

        Args:
            member: (m,) group of each model.
        """
        join = np.eye(groups, dtype=np.float32)[member]
        if self._by_value:
            own, below = self._own @ join, self._below @ join
            return _hollow(np.matmul(own.transpose(0, 2, 1), below))
        parts = [
            _hollow(join.T @ results(self._labels[f : f + BLOCK]).astype(np.float32) @ join)
            for f in range(0, len(self._labels), BLOCK)
        ]
        return np.concatenate(parts)


def results(labels: Floats) -> Floats:
    """(n, m, m) 1 where the row model beat the column model, ½ for a tie, 0 where unknown."""
    gap = labels[:, :, None] - labels[:, None, :]
    return _hollow(np.where(np.isnan(gap), 0.0, (np.sign(gap) + 1) / 2))


def _hollow(tables: Array) -> Array:
    """Nobody beats itself."""
    diagonal = np.arange(tables.shape[1])
    tables[:, diagonal, diagonal] = 0
    return tables


# Eagle: a global ranking of models, mixed with one of the question's neighbourhood.

#: Elo points per unit of log odds, and where ratings begin.
POINTS, BEGIN = 400 / np.log(10), 1000.0
#: Questions rated at once, by cells of (question, model, model): few enough to stay in a cache.
CELLS = 1 << 19


@listed
class Eagle:
    """Eagle (Zhao et al., arXiv 2409.15518); "Elo" in the plateau study.

    Task: rank models by pairwise results. Global rating over all train questions,
    local rating over the N nearest ones (published: 20) beginning from the global
    one; score = P·global + (1−P)·local in points of Elo, P = 0.5. Rule: the
    highest rating, among those within the budget.

    Elo depends on the order of results. Here both ratings are the Bradley-Terry
    maximum likelihood, which has none: the local one counts the global expectation
    as `prior` results of each pair. The preset `text` replays neighbours from far to
    near with K = 32. Implementations that add an Elo of 1500 to a local mean in
    [0, 1] route by the global ranking alone; here both are in the same unit.
    """

    name = "eagle"
    #: Whether its constants are published ones (`listed.presets`).
    as_published: bool = False

    def __init__(self, neighbours: int = 50, share: float = 0.5, prior: float = 1.0):
        self.neighbours, self.share, self.prior = neighbours, share, prior

    def fit(self, train: Examples) -> Eagle:
        train = settled(usable(train))
        self._vectors, self._labels = train.queries.vectors(), train.labels
        won = Wins(train.labels).total()
        self._global = ratings((won + half(won.shape[0]))[None])[0]
        return self

    def scores(self, queries: Queries) -> Floats:
        near = nearest(queries.vectors(), self._vectors, self.neighbours)[0]
        m = len(self._global)
        size = max(1, CELLS // (m * m))
        wins = Wins(self._labels)
        local = in_blocks(lambda block: self._local(block, wins), near, size, m)
        return np.asarray(self.share * self._global + (1 - self.share) * local)

    def _local(self, near: Ints, wins: Wins) -> Floats:
        if self.as_published:
            return replayed(self._global, self._labels, near)
        odds = (self._global[:, None] - self._global[None, :]) / POINTS
        expected = self.prior / (1 + np.exp(-odds))
        np.fill_diagonal(expected, 0.0)
        return ratings(wins.among(near) + expected)


def half(m: int) -> Floats:
    """Half a win each way between all models, which keeps every rating finite."""
    return 0.5 * (1 - np.eye(m))


def ratings(won: Floats, iterations: int = 60) -> Floats:
    """(n, m) Elo of the Bradley-Terry maximum likelihood, by Hunter's MM iteration.

    Args:
        won: (n, m, m) wins of the row model over the column model.
    """
    if won.shape[1] == 1:
        return np.full((len(won), 1), BEGIN)
    return np.asarray(BEGIN + POINTS * np.log(strengths(won, iterations, 1e-6, (1e-9, 1e-12))))


def strengths(won: Floats, iterations: int, near: float, least: tuple[float, float]) -> Floats:
    """(n, m) Bradley-Terry strengths of geometric mean 1, by Hunter's MM iteration (2004).

    Args:
        won: (n, m, m) wins of the row model over the column model.
        near: relative change at which they are found.
        least: wins of a model, and games by strength, are taken for at least so many.
    """
    games = won + won.transpose(0, 2, 1)
    total = np.maximum(won.sum(axis=2), least[0])
    strength = np.ones(total.shape)
    pairs = np.empty(won.shape)
    for _ in range(iterations):
        np.add(strength[:, :, None], strength[:, None, :], out=pairs)
        np.divide(games, pairs, out=pairs)
        new = total / np.maximum(pairs.sum(axis=2), least[1])
        new /= np.exp(np.log(new).mean(axis=1, keepdims=True))
        done = np.allclose(new, strength, rtol=near, atol=0)
        strength = new
        if done:
            break
    return strength


def replayed(begin: Floats, labels: Floats, near: Ints, k: float = 32.0) -> Floats:
    """(n, m) Elo after the neighbours' results one by one, from `begin`, far to near.

    Of a neighbour the pairs (a, b), a < b, are replayed in rising order. Pairs of equal a + b
    share no model, and each comes after all that precede it and share one: they go at once.
    """
    rating = np.tile(begin[:, None], (1, len(near)))
    m = len(begin)
    for column in near.T[::-1]:
        y = labels[column].T
        for total in range(1, 2 * m - 2):
            a = np.arange(max(0, total - m + 1), (total + 1) // 2)
            b = total - a
            gap = y[a] - y[b]
            score = (np.sign(gap) + 1) / 2
            expected = 1 / (1 + np.exp((rating[b] - rating[a]) / POINTS))
            change = np.nan_to_num(k * (score - expected))
            rating[a] += change
            rating[b] -= change
    return np.ascontiguousarray(rating.T)
