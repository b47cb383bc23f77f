"""Who beat whom on many questions at once: counts of wins as products of indicators.

The wins of model i over model j on a question, 1 for a better label and ½ for a tie, are
Σ_v 1[y_i = v] · (1[y_j < v] + ½·1[y_j = v]) over the values v of the labels. Labels with few
values, such as right and wrong, need one matrix product for any set of questions, where a
table per question has m² cells.
"""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.arrays import Array, Floats, Ints, Vectors

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
