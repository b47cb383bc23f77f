"""Best-generalist heuristic: the model that is best on the train questions, for every query."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.matrix.memmap import allocate
from routeyard.pipelines.matrix.row_blocks import by_rows
from routeyard.pipelines.routers.base import Examples, Queries, listed, model_means

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
