"""Evaluate a large release with all reference routers, embeddings given.

The release is planted: clusters of questions in which some models are better,
missing labels here and there. Timed from Arrow tables to the finished tables
of metrics, curves and comparisons.
"""

from __future__ import annotations

import argparse
import resource
import time
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.common.matrix import from_tables
from routeyard.pipelines.evaluate.run import evaluate
from routeyard.pipelines.routers import REFERENCE, ROUTERS, Router


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--queries", type=int, default=36_000)
    parser.add_argument("--models", type=int, default=112)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--resamples", type=int, default=10_000)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    tables = planted(arguments.queries, arguments.models, arguments.dimensions)
    wall, cpu = time.perf_counter(), time.process_time()
    core = from_tables(**tables)
    loaded = time.perf_counter() - wall
    done = evaluate(
        core,
        {name: partial(_make, name) for name in REFERENCE},
        resamples=arguments.resamples,
    )
    accuracy = {
        row["router"]: round(row["value"], 4)
        for row in done.metrics.to_pylist()
        if row["metric"] == "accuracy" and not row["router"].startswith("single:")
    }
    return {
        "queries": arguments.queries,
        "models": arguments.models,
        "test_queries": done.facts["n_test"],
        "resamples": arguments.resamples,
        "routers": list(REFERENCE),
        "matrix_s": round(loaded, 2),
        "wall_s": round(time.perf_counter() - wall, 1),
        "cpu_s": round(time.process_time() - cpu, 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "accuracy": accuracy,
    }


def _make(name: str, seed: int) -> Router:
    router: Router = ROUTERS.get(name)()
    return router


def planted(n: int, m: int, d: int, *, seed: int = 0) -> dict[str, pa.Table]:
    """Tables of a release of n questions and m models with structure to be learnt."""
    rng = np.random.default_rng(seed)
    tasks = 40
    task = rng.integers(0, tasks, n)
    centres = rng.normal(size=(tasks, d))
    vectors = (centres[task] + 0.7 * rng.normal(size=(n, d))).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    level, special = rng.normal(0.3, 0.5, m), rng.normal(0, 1.0, (tasks, m))
    chance = 1 / (1 + np.exp(-(level + special[task] + rng.normal(0, 1, (n, 1)))))
    score = (rng.random((n, m)) < chance).astype(np.float64)
    keep = rng.random(n * m) > 0.01
    query = np.repeat(np.arange(n, dtype=np.int32), m)[keep]
    model = np.tile(np.arange(m, dtype=np.int32), n)[keep]
    ids = pa.array([f"q{i:020x}" for i in range(n)])
    names = pa.array([f"model-{k:03d}" for k in range(m)])
    long_q = pa.DictionaryArray.from_arrays(query, ids).cast(pa.string())
    long_m = pa.DictionaryArray.from_arrays(model, names).cast(pa.string())
    size = len(query)
    price = np.geomspace(1e-5, 1e-2, m)
    cost = price[model] * rng.gamma(4.0, 0.25, size)
    tokens = rng.integers(50, 900, size)
    flat = pa.array(vectors.ravel())
    offsets = pa.array(np.arange(0, n * d + 1, d, dtype=np.int32))
    return {
        "queries": pa.table(
            {
                "query_id": ids,
                "task": [f"task-{t:02d}" for t in task],
                "domain": [f"domain-{t % 5}" for t in task],
                "prompt": [""] * n,
            }
        ),
        "models": pa.table({"model_id": names, "params_b": np.geomspace(1, 400, m)}),
        "labels": pa.table(
            {
                "query_id": long_q,
                "model_id": long_m,
                "score": score.ravel()[keep],
                "contested": pa.array(np.zeros(size, bool)),
                "decided_by": pa.DictionaryArray.from_arrays(
                    np.zeros(size, np.int8), pa.array(["numeric"])
                ).cast(pa.string()),
            }
        ),
        "responses": pa.table(
            {
                "query_id": long_q,
                "model_id": long_m,
                "prompt_tokens": pa.array(np.full(size, 100)),
                "completion_tokens": pa.array(tokens),
                "cost_usd": cost,
                "latency_s": tokens / 100.0,
            }
        ),
        "embeddings": pa.table(
            {
                "query_id": ids,
                "encoder": ["planted"] * n,
                "vector": pa.ListArray.from_arrays(offsets, flat),
            }
        ),
        "splits": pa.table(
            {
                "scheme": ["dense"] * n,
                "query_id": ids,
                "split": rng.choice(["train", "validation", "test"], n, p=[0.7, 0.1, 0.2]),
            }
        ),
    }
