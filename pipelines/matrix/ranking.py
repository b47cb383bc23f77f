"""Models in order of their labels: which is better, and which goes first where two are equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.matrix.row_blocks import by_rows, every, sums_of
from routeyard.schemas.intervals import Counts

Floats = NDArray[np.float64]


def mean_costs(costs: Floats) -> Floats:
    """(m,) mean cost of every model over the queries where it is known."""
    return means_of(lambda part: part, costs)


def means_of(work: Callable[..., Any], *values: Floats) -> Floats:
    """`mean_costs(work(*values))` of work that `row_blocks.by_rows` can do."""
    total = sums_of(lambda *part: _filled(work(*part)), *values)
    n = sums_of(lambda *part: ~np.isnan(work(*part)), *values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(total / n)


def _filled(values: Floats) -> Floats:
    return np.where(np.isnan(values), 0.0, values)


def single_means(labels: Floats) -> Floats:
    """(m,) accuracy of every model over the queries it has a label for."""
    return mean_costs(labels)


def counts_of(labels: Floats, names: Sequence[str]) -> dict[str, Counts]:
    """Model → (sum of scores, labels, questions with a label of any model), as
    `schemas.intervals` compares them."""
    right, known = sums_of(np.nan_to_num, labels), sums_of(lambda y: ~np.isnan(y), labels)
    n = sums_of(lambda y: ~np.isnan(y).all(axis=1, keepdims=True), labels)[0]
    return {
        name: (float(hits), float(k), float(n))
        for name, hits, k in zip(names, right, known, strict=True)
    }


def levels(labels: Floats) -> Floats:
    """(m,) accuracy of every model over the same questions, so that models can be compared.

    Where a model has no label it counts as an average model of the question: its
    own questions say how much better or worse it is than the others there, and no
    model leads because it was asked the easy questions, or three of them. Without
    holes this is the accuracy; NaN for a model without any label.

    >>> y = np.array([[1.0, 1.0], [0.0, np.nan], [1.0, np.nan], [1.0, np.nan]])
    >>> single_means(y).tolist(), levels(y).tolist()
    ([0.75, 1.0], [0.75, 0.75])
    """
    return single_means(evened(labels))


def evened(values: Floats) -> Floats:
    """(n, m) values whose holes hold the mean of the question; a column of holes stays one."""
    if every(lambda part: ~np.isnan(part), values):
        return values
    some = sums_of(lambda part: ~np.isnan(part), values) > 0

    def work(part: Floats) -> Floats:
        filled = np.where(np.isnan(part), mean_costs(part.T)[:, None], part)
        return np.where(some, filled, np.nan)

    return np.asarray(by_rows(work, values))


def ranked(labels: Floats, cost: Floats | None = None) -> NDArray[np.int64]:
    """(m,) models by `levels`, best first.

    Ties go to the one with more labels, then to the cheaper, then to the lower `draw`:
    never to a name or a position. Only models with equal labels and costs are left to
    their order, and those are interchangeable.

    >>> ranked(np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([3.0, 2.0])).tolist()
    [1, 0]
    """
    # Means of equal scores may differ in their last bit where holes were filled.
    accuracy = np.round(np.nan_to_num(levels(labels), nan=-1.0), 12)
    price = np.zeros(len(accuracy)) if cost is None else cost
    labelled = sums_of(lambda part: ~np.isnan(part), labels)
    keys = np.stack([-accuracy, -labelled.astype(np.float64), price])
    distinct = len(np.unique(keys, axis=1).T) == len(accuracy)
    last = np.zeros(len(accuracy)) if distinct else draw(labels)
    return np.lexsort((last, *keys[::-1]))


def draw(labels: Floats) -> NDArray[np.uint64]:
    """(m,) number drawn for each model, seeded by its labels beside those of the others.

    A row counts through what it holds and a column through its values in which rows, three
    times over (colour refinement): the numbers move with the models when columns are
    permuted, and permuted rows change nothing.
    """
    found = np.zeros(labels.shape[1], dtype=np.uint64)

    def work(part: Floats) -> NDArray[np.uint64]:
        value = np.where(np.isnan(part), -1.0, part + 0.0).view(np.uint64)
        value = _mixed(value + found)
        return _mixed(value + value.sum(axis=1, dtype=np.uint64)[:, None])

    for _ in range(3):
        found = np.asarray(sums_of(work, labels), dtype=np.uint64)
    return found


def shuffled(labels: Floats, seed: int) -> NDArray[np.int64]:
    """(m,) models in an order drawn by a seed and by their labels, so that it moves with them."""
    return np.argsort(_mixed(draw(labels) + np.uint64(seed)), kind="stable")


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash of each number."""
    from pandas.util import hash_array

    return np.asarray(hash_array(values.ravel(), categorize=False)).reshape(values.shape)
