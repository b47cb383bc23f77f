"""Eagle: a global ranking of models, mixed with one of the question's neighbourhood."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints
from routeyard.pipelines.routers.base import Examples, Queries, listed, usable
from routeyard.pipelines.routers.neighbours.knn import nearest, settled
from routeyard.pipelines.routers.neighbours.wins import Wins

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
        blocks = [near[first : first + size] for first in range(0, len(near), size)]
        parts = [self._local(block, wins) for block in blocks]
        local = np.concatenate(parts) if parts else np.empty((0, m))
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
    m = won.shape[1]
    if m == 1:
        return np.full((len(won), 1), BEGIN)
    games = won + won.transpose(0, 2, 1)
    total = won.sum(axis=2)
    strength = np.ones(total.shape)
    pairs = np.empty(won.shape)
    for _ in range(iterations):
        np.add(strength[:, :, None], strength[:, None, :], out=pairs)
        np.divide(games, pairs, out=pairs)
        new = np.maximum(total, 1e-9) / np.maximum(pairs.sum(axis=2), 1e-12)
        new /= np.exp(np.log(new).mean(axis=1, keepdims=True))
        done = np.allclose(new, strength, rtol=1e-6, atol=0)
        strength = new
        if done:
            break
    return np.asarray(BEGIN + POINTS * np.log(strength))


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
