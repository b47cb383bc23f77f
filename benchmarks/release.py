"""Planted releases of any size, seeded: what `growth` and tests measure on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

TASKS = 20
#: Questions that are made at a time.
PART = 1 << 17


def make(labels: int, models: int) -> dict[str, pa.Table]:
    """Labels, responses, queries and models of a seeded artificial benchmark."""
    streamed = stream(labels, models)
    return {
        name: table if isinstance(table, pa.Table) else pa.concat_tables(table.parts())
        for name, table in streamed.items()
    }


def stream(labels: int, models: int, missing: float = 0.0, text: int = 0) -> dict[str, Any]:
    """The same, with labels and responses one model at a time.

    Args:
        missing: share of labels that are missing.
        text: letters in a question, at least.
    """
    from routeyard.pipelines.release.database import Streamed
    from routeyard.schemas import MODELS, QUERIES, SPLITS

    n = max(labels // models, 1)
    ids = pa.array([f"q{i:020x}" for i in range(n)])
    names = pa.array([f"model-{m:03d}" for m in range(models)])
    difficulty = 0.5 + np.random.default_rng(0).random(n)
    tasks = pa.array([f"task{i % TASKS}" for i in range(n)])
    more = " And what follows from it?" * (text // 26)

    def asked(first: int) -> pa.Table:
        rows = range(first, min(first + PART, n))
        asks = pa.array([f"Question number {i}?{more}" for i in rows])
        named, task = ids.slice(first, len(rows)), tasks.slice(first, len(rows))
        columns = {"query_id": named, "source_id": named, "question": asks, "prompt": asks}
        same = {"source": "bench", "domain": "math", "scorer": "numeric", "metadata": "{}"}
        columns |= {"task": task, **same, "choices": [], "references": ["1"]}
        return _table(QUERIES, columns, len(rows))

    split = pa.array([("train", "train", "validation", "test")[i % 4] for i in range(n)])
    skills = np.linspace(0.3, 0.9, models)

    def parts(make_one: Callable[..., pa.Table]) -> Streamed:
        return Streamed(
            lambda: (make_one(ids, names[m], m, skills[m] * difficulty) for m in range(models))
        )

    return {
        "queries": Streamed(lambda: (asked(first) for first in range(0, n, PART))),
        "models": _table(MODELS, {"model_id": names, "kind": "real", "simulated": True}, models),
        "labels": parts(partial(_labels, missing=missing)),
        "responses": parts(_responses),
        "splits": _table(SPLITS, {"scheme": "dense", "query_id": ids, "split": split}, n),
    }


def _labels(ids: pa.Array, name: pa.Scalar, number: int, chance: Any, missing: float) -> pa.Table:
    from routeyard.schemas import LABELS

    random = np.random.default_rng((1, number))
    right = random.random(len(ids)) < chance
    columns = {"query_id": ids, "model_id": name, "score": right.astype(float), "correct": right}
    columns |= {"decided_by": "numeric", "contested": random.random(len(ids)) < 0.02}
    made = _table(LABELS, {**columns, "n_samples": 1}, len(ids))
    return made.filter(pa.array(random.random(len(ids)) >= missing)) if missing else made


def _responses(ids: pa.Array, name: pa.Scalar, number: int, chance: Any) -> pa.Table:
    from routeyard.schemas import RESPONSES

    random, size = np.random.default_rng((2, number)), len(ids)
    columns = {
        "query_id": ids,
        "model_id": name,
        "sample": 0,
        "text": "Answer: 1",
        "status": "ok",
        "prompt_tokens": random.integers(50, 500, size),
        "completion_tokens": random.integers(5, 800, size),
        "cost_usd": random.random(size) * 1e-3 * (1 + number),
        "cost_source": "provider",
        "latency_s": random.random(size),
        "attempts": 1,
    }
    return _table(RESPONSES, columns, size)


def _table(contract: Any, columns: dict[str, Any], rows: int) -> pa.Table:
    arrays = []
    for column in contract.columns:
        value = columns.get(column.name)
        if isinstance(value, pa.Array):
            arrays.append(value)
        elif isinstance(value, np.ndarray):
            arrays.append(pa.array(value, type=column.type))
        else:
            same = value if isinstance(value, pa.Scalar) else pa.scalar(value, type=column.type)
            arrays.append(pa.repeat(same, rows))
    return pa.Table.from_arrays(arrays, schema=contract.schema)
