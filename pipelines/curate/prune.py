"""Pool pruning: Jaccard similarity of correct sets, and greedy removal.

Correct sets are kept bit-packed and intersected in tiles; half of the symmetric
matrix is computed. The greedy part keeps row sums of similarity and subtracts the
removed model from them. Similarities are summed as 64-bit integers, so the order of
removal does not depend on the order of summing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from routeyard.pipelines.common.arrays import Bools
from routeyard.pipelines.common.matrix import LabelMatrix, in_drawn_order, label_matrix
from routeyard.pipelines.curate.rule import Curated, Rule, refused, removing

#: Fixed point of a similarity: 2³¹, so that 2³² of them still fit int64.
ONE = 1 << 31
#: Models per tile of the similarity matrix.
TILE = 1024
#: Models above which the int8 product is worth loading torch.
LARGE = 2048
#: Packed bytes (8 queries each) multiplied at a time: bounds the float32 copies.
CHUNK_BYTES = 1 << 12


@dataclass(frozen=True, slots=True)
class Removal:
    """One removal: the model, its score and both parts of it."""

    model: int
    score: float
    accuracy: float
    mean_similarity: float


def jaccard_fixed(correct: Bools, known: Bools) -> NDArray[np.uint32]:
    """(m, m) |both right| / |either right| over queries both answered, times `ONE`.

    0/0 is 0. The diagonal is `ONE` for a model that is right at least once.
    Fixed point, rounded down: equal inputs give equal bits on any machine.
    """
    m = len(correct)
    large = m > LARGE
    right = np.packbits(correct & known, axis=1)
    partial = np.flatnonzero(~known.all(axis=0))
    # Where both answered everything, |either| needs no product with the mask:
    # C·Kᵀ = |C| − C·Mᵀ, and the missing cells M are in few columns or in all.
    some = np.packbits((correct & known)[:, partial], axis=1)
    missing = np.packbits(~known[:, partial], axis=1)
    sizes = np.bitwise_count(right).sum(axis=1, dtype=np.int64)
    out = np.zeros((m, m), dtype=np.uint32)
    for start in range(0, m, TILE):
        rows = slice(start, min(m, start + TILE))
        for other in range(0, start + 1, TILE):
            columns = slice(other, min(m, other + TILE))
            both = _products(right[rows], right[columns], large=large)
            either = sizes[rows, None] + sizes[None, columns] - both
            if len(partial):
                either -= _products(some[rows], missing[columns], large=large)
                either -= _products(missing[rows], some[columns], large=large)
            value = ((both * ONE) // np.maximum(either, 1)).astype(np.uint32)
            out[rows, columns] = value
            out[columns, rows] = value.T
    return out


def _products(a: NDArray[np.uint8], b: NDArray[np.uint8], *, large: bool) -> NDArray[np.int64]:
    """(i, j) sizes of the intersections of packed rows.

    A product of zeros and ones is exact in float32 up to 2²⁴ terms, and on tiles
    that fit the cache it is faster than NumPy's popcount. Large pools are worth
    loading torch, whose int8 product is exact too and about four times as fast.
    """
    multiply = _int8_product if large else _float_product
    total = np.zeros((len(a), len(b)), dtype=np.int64)
    for start in range(0, a.shape[1], CHUNK_BYTES):
        part = slice(start, start + CHUNK_BYTES)
        total += multiply(np.unpackbits(a[:, part], axis=1), np.unpackbits(b[:, part], axis=1))
    return total


def _float_product(left: NDArray[np.uint8], right: NDArray[np.uint8]) -> NDArray[np.int64]:
    product: NDArray[np.float32] = left.astype(np.float32) @ right.astype(np.float32).T
    return product.astype(np.int64)


def _int8_product(left: NDArray[np.uint8], right: NDArray[np.uint8]) -> NDArray[np.int32]:
    import torch

    item, other = (torch.from_numpy(part.view(np.int8)) for part in (left, right))
    product: NDArray[np.int32] = torch._int_mm(item, other.T.contiguous()).numpy()
    return product


def greedy_order(
    similarity: NDArray[np.uint32],
    accuracy: NDArray[np.float64],
    *,
    trade_off: float,
    target: int = 1,
    protected: Sequence[int] = (),
    max_mean_similarity: float | None = None,
) -> list[Removal]:
    """Removals in order: the lowest λ·accuracy − (1−λ)·mean similarity goes first.

    Args:
        similarity: (m, m) from `jaccard_fixed`.
        accuracy: (m,) share of right answers among labels, 0 to 1.
        trade_off: λ in [0, 1].
        target: Models to stop at.
        protected: Models that never go, but still count as company.
        max_mean_similarity: Also stop once the mean over the models still in
            of their mean similarity is at or below this.

    Ties go to the lower accuracy, then to the later row.
    """
    m = len(accuracy)
    alive = np.ones(m, dtype=bool)
    free = np.ones(m, dtype=bool)
    free[list(protected)] = False
    # AvgSim leaves out the model itself.
    total: NDArray[np.int64] = similarity.sum(axis=1, dtype=np.int64)
    sums = total - np.diag(similarity).astype(np.int64)
    # Accuracy in the same fixed point: the score is exact integer arithmetic
    # but for one division per model.
    quality = trade_off * accuracy
    steps: list[Removal] = []
    left = m
    while left > max(target, 1) and (free & alive).any():
        mean = sums / float((left - 1) * ONE)
        if max_mean_similarity is not None and mean[alive].mean() <= max_mean_similarity:
            break
        score = np.where(alive & free, quality - (1 - trade_off) * mean, math.inf)
        lowest = np.flatnonzero(score == score.min())
        if len(lowest) > 1:
            lowest = lowest[accuracy[lowest] == accuracy[lowest].min()]
        gone = int(lowest[-1])
        steps.append(Removal(gone, float(score[gone]), float(accuracy[gone]), float(mean[gone])))
        alive[gone] = False
        sums -= similarity[gone]
        left -= 1
    return steps


def prune(
    tables: Mapping[str, pa.Table],
    *,
    trade_off: float,
    target: int | None = None,
    max_mean_similarity: float | None = None,
    protected: Sequence[str] = (),
) -> Curated:
    """A smaller pool: models that add little are taken away, one at a time.

    Of equal scores the lower accuracy goes first, then what the labels draw: never a name.

    Args:
        tables: `queries`, `models`, `labels`. Pseudo-specialists stay and do not count.
        trade_off: λ, the weight of accuracy against similarity; no default, since
            the RouterBench+ paper gives none.
        target: Real models to keep.
        max_mean_similarity: Stop once the pool's mean similarity is at or below this.
        protected: Models that always stay.

    Raises:
        RecipeError: neither stop rule is given, λ is outside [0, 1], or a
            protected model is not in the pool.
    """
    if not 0 <= trade_off <= 1:
        raise refused(
            "prune",
            f"trade_off (λ) must lie in [0, 1]; got {trade_off}",
            "1 prunes by accuracy alone, 0 by similarity alone",
        )
    if target is None and max_mean_similarity is None:
        raise refused(
            "prune",
            "prune needs a stop rule",
            "set 'target' (models to keep) or 'max_mean_similarity'",
        )
    matrix = label_matrix(tables, where="prune")
    unknown = sorted(set(protected) - set(tables["models"].column("model_id").to_pylist()))
    if unknown:
        raise refused(
            "prune", f"protected model {unknown[0]!r} is not in the pool", "name models of the pool"
        )
    matrix = in_drawn_order(matrix)
    steps = greedy_order(
        jaccard_fixed(matrix.correct, matrix.known),
        model_accuracy(matrix),
        trade_off=trade_off,
        target=target or 1,
        protected=[matrix.models.index(name) for name in protected if name in matrix.models],
        max_mean_similarity=max_mean_similarity,
    )
    away = [
        (
            matrix.models[step.model],
            "pruned",
            f"removal {place}: score {step.score:.6f} = {trade_off:g} × accuracy "
            f"{step.accuracy:.6f} − {1 - trade_off:g} × mean similarity {step.mean_similarity:.6f}",
        )
        for place, step in enumerate(steps, start=1)
    ]
    shown = ("score", "accuracy", "mean_similarity")
    order = [
        {"model_id": matrix.models[step.model], **{name: getattr(step, name) for name in shown}}
        for step in steps
    ]
    figures = {"trade_off": trade_off, "models": len(matrix.models), "order": order}
    return removing(tables, "models", away, rule="prune", figures=figures)


def model_accuracy(matrix: LabelMatrix) -> NDArray[np.float64]:
    """(m,) right answers per label; a model without labels has 0 and goes first."""
    known = matrix.known.sum(axis=1)
    return np.asarray((matrix.correct & matrix.known).sum(axis=1) / np.maximum(known, 1))


RULE = Rule("prune", prune)
