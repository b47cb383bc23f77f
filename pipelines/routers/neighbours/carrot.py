"""CARROT: score and cost of every model, both from the nearest train questions."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats, Ints
from routeyard.pipelines.routers.base import Examples, Queries, listed, model_means, usable
from routeyard.pipelines.routers.neighbours.knn import nearest, settled

#: Neighbours that the published code tries.
CHOICES = (2, 4, 8, 16, 32, 64, 128, 256, 512)


@listed
class Carrot:
    """CARROT (Somerstep et al., arXiv 2502.03261), its kNN form.

    Task: expected score and expected cost of each model. Both are means over k
    neighbours by cosine; k is chosen by ROC-AUC of the scores in `folds`-fold
    cross-validation on train (published: five). Rule: argmax (1−λ)·p̂ − λ·ĉ with
    the cost in dollars, not scaled (`evaluate`'s scaling `none`); `costs` gives ĉ.

    The published cost is price × predicted output length; a release records what
    was paid, which is predicted instead. Costs unknown on train stay unknown. The
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
        self._costs = train.costs.get("usd")
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
            found = means_at(self._labels, rest[near], self._prior, self.choices, self.weight)
            for k, means in found.items():
                predicted[k][held] = means
        worth = {k: mean_auc(predicted[k], self._labels) for k in self.choices}
        return max(self.choices, key=lambda k: (worth[k], -k))

    def scores(self, queries: Queries) -> Floats:
        near = nearest(queries.vectors(), self._vectors, self.k)[0]
        return means_at(self._labels, near, self._prior, (self.k,), self.weight)[self.k]

    def costs(self, queries: Queries) -> Floats | None:
        """(n, m) predicted USD per question; None when the release knows no dollars."""
        if self._costs is None:
            return None
        near = nearest(queries.vectors(), self._vectors, self.k)[0]
        prior = model_means(self._costs)
        return means_at(self._costs, near, prior, (self.k,), self.weight)[self.k]


def means_at(
    values: Floats, near: Ints, prior: Floats, counts: tuple[int, ...], weight: float
) -> dict[int, Floats]:
    """k → (n, m) mean of known values over the first k neighbours, the prior as `weight` more."""
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    total = np.tile(weight * prior, (len(near), 1))
    n = np.full((len(near), values.shape[1]), weight)
    found = {}
    for position, column in enumerate(near.T, 1):
        total += filled[column]
        n += known[column]
        if position in counts:
            found[position] = np.where(n > 0, total / np.maximum(n, 1e-300), prior)
    for k in counts:  # more neighbours than questions: all of them
        found.setdefault(k, np.where(n > 0, total / np.maximum(n, 1e-300), prior))
    return found


def mean_auc(predicted: Floats, labels: Floats) -> float:
    """Mean ROC-AUC over the models that have right and wrong answers; 0.5 without any."""
    from scipy.stats import rankdata

    found = []
    for column in range(labels.shape[1]):
        known = ~np.isnan(labels[:, column])
        right = labels[known, column] >= 0.5
        n_right, n_wrong = int(right.sum()), int((~right).sum())
        if n_right and n_wrong:
            ranks = rankdata(predicted[known, column])
            above = ranks[right].sum() - n_right * (n_right + 1) / 2
            found.append(above / (n_right * n_wrong))
    return float(np.mean(found)) if found else 0.5
