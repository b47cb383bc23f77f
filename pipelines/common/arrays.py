"""Arrays of the numbers that evaluations and curation work on, by one name each."""

from __future__ import annotations

import json
import mmap
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from routeyard.pipelines.common import machine as memory
from routeyard.pipelines.common.errors import DiskFull
from routeyard.schemas.release import Counts

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Names = NDArray[np.str_]
Array = NDArray[Any]


def ratio(part: Any, whole: Any) -> Floats:
    """part / whole where `whole` is above 0, else NaN."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.asarray(whole) > 0, np.divide(part, whole), np.nan)


# Which questions are the dense slice: marked by ingest, read by collect and by the splits.
#
# A source with `dense: n` marks its first n questions. They are asked of the whole
# pool; the others are the extension, which `collect.coverage` thins (Nine-by-300k,
# appendix D.2 of the routing-plateau paper).

#: Key in `queries.metadata`, and its two values.
SLICE = "slice"
DENSE, EXTENSION = "dense", "extension"


def dense_rows(queries: pa.Table) -> Bools:
    """(n,) True for questions marked as the dense slice; all False where nothing is marked."""
    values = np.zeros(queries.num_rows, dtype=bool)
    if "metadata" not in queries.column_names:
        return values
    needle = json.dumps(DENSE)
    for row, text in enumerate(queries.column("metadata").to_pylist()):
        # Parsed only where the mark can be: most benchmarks have none.
        if text and needle in text:
            metadata: Any = json.loads(text)
            values[row] = isinstance(metadata, dict) and metadata.get(SLICE) == DENSE
    return values


# Arrays as large as a release: in memory while they are small, on disk when they are not.
#
# A large one is stored in a file without a name in the temporary folder (`TMPDIR`) and is mapped
# into
# memory. Values and results are the same, but its pages can be taken back, so what a process needs
# is what it works on. The file goes with the array, also when the process is killed.

#: Bytes from which an array is stored on disk.
LARGE = 128 << 20
#: Rows that are worked on together.
ROWS = 1 << 16


def allocate(shape: tuple[int, ...], dtype: Any = np.float64, fill: float | None = None) -> Array:
    """An array of a shape, every value `fill` (None: whatever is there).

    Raises:
        DiskFull: the temporary folder is too small for it.
    """
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    if size < max(LARGE, 1):
        return np.empty(shape, kind) if fill is None else np.full(shape, fill, kind)
    with tempfile.TemporaryFile(prefix="routeyard-room-") as file:
        _reserve(file.fileno(), size)
        array = np.frombuffer(mmap.mmap(file.fileno(), size), dtype=kind).reshape(shape)
    if fill is not None:
        for part in blocks(len(array)):
            array[part] = fill
    return array


def on_disk_if_large(values: Array) -> Array:
    """The same values; a copy on disk where they are large and in memory."""
    if values.nbytes < LARGE or on_disk(values):
        return values
    out = allocate(values.shape, values.dtype)
    out[...] = values
    return out


def on_disk(values: Any) -> bool:
    """Whether an array is in a mapped file."""
    while isinstance(values, np.ndarray):
        values = values.base
    return isinstance(values, memoryview | mmap.mmap)


def take_rows(values: Array, rows: Ints) -> Array:
    """`values[rows]`, on disk where that is large."""
    shape = (len(rows), *values.shape[1:])
    out = allocate(shape, values.dtype)
    for part in blocks(len(rows)):
        out[part] = values[rows[part]]
    return out


def blocks(rows: int) -> Iterator[slice]:
    """Ranges of rows that are worked on together, in order."""
    for first in range(0, rows, ROWS):
        yield slice(first, min(first + ROWS, rows))


def _reserve(file: int, size: int) -> None:
    """Disk space reserved now: a page that finds none later would end the process."""
    try:
        os.posix_fallocate(file, 0, size)
    except OSError as error:
        raise disk_full(size, "figures", error) from error


def disk_full(size: int, of: str, error: OSError) -> DiskFull:
    """Error of a temporary folder that is too small for so many bytes."""
    return DiskFull(
        f"there is no room for {size / 1e9:.1f} GB of {of}: {error.strerror}",
        where=tempfile.gettempdir(),
        next_step="set TMPDIR to a folder of a disk with more room",
    )


# Work on long arrays that treats each row alone, done a block of rows at a time.
#
# `memmap.allocate` makes the array for the result. Up to one block it is the plain call; beyond
# that the figures do not depend on the size of blocks, to the last digit.


def by_rows(work: Callable[..., Any], *values: Array) -> Any:
    """`work(*values)`, for work that gives each row the same whatever rows are beside it.

    Args:
        values: arrays of n rows each.

    Returns:
        (n, …) what `work` returns.
    """
    n = len(values[0])
    if n <= ROWS:
        return work(*values)
    out: Array | None = None
    for part in blocks(n):
        result = work(*(value[part] for value in values))
        if out is None:
            out = allocate((n, *result.shape[1:]), result.dtype)
        out[part] = result
    return out


def known(values: Array) -> Bools:
    """(n, …) whether there is a value."""
    return np.asarray(by_rows(lambda part: ~np.isnan(part), values))


def sums_of(work: Callable[..., Any], *values: Array) -> Any:
    """`work(*values).sum(axis=0)` of such work on matrices, or on positions of their rows."""
    n, step = values[0].shape, values[0].strides
    if len(n) > 1 and (n[1] == 1 or 0 < step[0] < step[1]):
        return work(*values).sum(axis=0)  # numpy adds adjacent values in another order
    total: Array | None = None  # rows are added one after the other, so blocks change nothing
    for part in blocks(max(n[0], 1)):
        result = work(*(value[part] for value in values))
        if total is not None:
            result = np.concatenate([total[None], result])
        total = result.sum(axis=0)
    return total


def every(work: Callable[..., Any], *values: Array) -> bool:
    """Whether `work(*values)` is true throughout."""
    return all(
        bool(np.all(work(*(value[part] for value in values)))) for part in blocks(len(values[0]))
    )


def side_by_side(columns: Sequence[Array]) -> Floats:
    """(n, k) columns of n numbers each as one array."""
    out = allocate((len(columns[0]), len(columns)))
    for k, column in enumerate(columns):
        out[:, k] = column
    return out


def distinct(values: Array) -> Array:
    """`np.unique(values)`, without a sorted copy of all of them."""
    parts = [np.unique(values[part]) for part in blocks(len(values))]
    return np.unique(np.concatenate(parts)) if parts else np.unique(values)


# Models in order of their labels: which is better, and which goes first where two are equal.


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
    `schemas.release` compares them."""
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
    values = np.zeros(labels.shape[1], dtype=np.uint64)

    def work(part: Floats) -> NDArray[np.uint64]:
        value = np.where(np.isnan(part), -1.0, part + 0.0).view(np.uint64)
        value = _mixed(value + values)
        return _mixed(value + value.sum(axis=1, dtype=np.uint64)[:, None])

    for _ in range(3):
        values = np.asarray(sums_of(work, labels), dtype=np.uint64)
    return values


def shuffled(labels: Floats, seed: int) -> NDArray[np.int64]:
    """(m,) models in an order drawn by a seed and by their labels, so that it moves with them."""
    return np.argsort(_mixed(draw(labels) + np.uint64(seed)), kind="stable")


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash of each number."""
    from pandas.util import hash_array

    return np.asarray(hash_array(values.ravel(), categorize=False)).reshape(values.shape)


# Whether an evaluation fits into memory: said before anything is read, with what it would need.

#: Bytes that an evaluation works on for each question, its texts of some 200 letters among them,
#: and how many matrices of a number for each question and model it holds at once, which are in
#: memory while they are small: measured at 9, 27 and 100 million labels (`flows/SCALE.md`).
EACH, MATRICES = 1_000, 20
#: Bytes for each question and model where something works on whole matrices in memory: routers
#: that are trained, the zoo's cells, studies.
PAIR = 60


def check_fits(questions: int, models: int, width: int = 0, *, whole: bool = False) -> None:
    """Stop before a release that does not fit is read.

    Args:
        width: numbers in the embedding of a question; routers that are trained hold all of
            them at once.
        whole: something works on whole matrices in memory, as what reads embeddings does.

    Raises:
        OutOfMemory: it needs more memory than there is; says how much, and what to do.
    """
    memory.check(
        f"an evaluation of {questions:,} questions × {models} models",
        needed(questions, models, width, whole=whole),
        next_step="evaluate where there is more memory, or build a release with fewer "
        "questions or models: the rule `sample` under `curate`, or a smaller `pool`",
    )


def needed(questions: int, models: int, width: int = 0, *, whole: bool = False) -> int:
    """Bytes that an evaluation works on at once; arguments as in `check_fits`."""
    matrix = min(8 * questions * models, LARGE)
    pairs = PAIR * models if whole or width else 0
    return questions * (EACH + pairs + 4 * width) + MATRICES * matrix
