"""Which models a query is asked of, when not all of them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.dense_slice import dense_rows
from routeyard.schemas.recipe.collect import Coverage

Rows = np.ndarray[Any, np.dtype[np.int32]]


def covered(queries: pa.Table, n_models: int, coverage: Coverage) -> list[Rows]:
    """For each model the rows of `queries` it is asked, int32, ascending.

    Each query is asked of `share` of the pool (rounded, at least one model). The
    queries of a task come in the order of a seeded hash, and each takes the
    models that task has asked least so far, ties broken at random: within a task
    any two models differ by one query at most. Another task's queries change
    nothing; another model or query of the same task may. The dense slice
    (`routeyard.pipelines.dense_slice`) is asked of every model and enters no count.
    """
    everything = np.arange(queries.num_rows, dtype=np.int32)
    draws = max(1, round(coverage.share * n_models))
    if draws >= n_models:
        return [everything] * n_models
    ids = queries.column("query_id").to_pylist()
    dense = dense_rows(queries)
    by_task: dict[str, list[int]] = defaultdict(list)
    for row, task in enumerate(queries.column("task").to_pylist()):
        if not dense[row]:
            by_task[task].append(row)
    asked = np.zeros((n_models, queries.num_rows), dtype=bool)
    asked[:, dense] = True
    for task, rows in by_task.items():
        rows.sort(key=lambda row: _digest(coverage.seed, ids[row]))
        random = np.random.default_rng(list(_digest(coverage.seed, task)))
        counts = np.zeros(n_models)
        for row in rows:
            picks = np.argsort(counts + random.random(n_models), kind="stable")[:draws]
            asked[picks, row] = True
            counts[picks] += 1
    return [np.flatnonzero(row).astype(np.int32) for row in asked]


def _digest(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{name}".encode()).digest()
