"""Planted releases: each task is a direction of the embedding in which one model is good."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from routeyard.pipelines.common.matrix import Core, from_tables


def planted_tables(
    n: int = 600, m: int = 4, d: int = 16, *, seed: int = 0, skill: float = 0.9, other: float = 0.4
) -> dict[str, pa.Table]:
    """Model k is right with probability `skill` on task k, with `other` elsewhere."""
    rng = np.random.default_rng(seed)
    task = rng.integers(0, m, n)
    centres = np.linalg.qr(rng.normal(size=(d, d)))[0][:m]
    vectors = centres[task] + 0.1 * rng.normal(size=(n, d))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chance = np.where(task[:, None] == np.arange(m), skill, other)
    score = (rng.random((n, m)) < chance).astype(float)
    qid = [f"q{i:020x}" for i in range(n)]
    mid = [f"model-{k}" for k in range(m)]
    usd = rng.uniform(0.5, 1.5, (n, m)) * 1e-3 * (1 + np.arange(m))
    splits = rng.choice(["train", "validation", "test"], n, p=[0.6, 0.1, 0.3])
    long_q, long_m = np.repeat(qid, m), np.tile(mid, n)
    return {
        "queries": pa.table(
            {
                "query_id": qid,
                "task": [f"task-{t}" for t in task],
                "domain": ["a" if t < m / 2 else "b" for t in task],
                "prompt": [f"question {i}" for i in range(n)],
            }
        ),
        "models": pa.table({"model_id": mid, "params_b": np.arange(1.0, m + 1)}),
        "labels": pa.table(
            {
                "query_id": long_q,
                "model_id": long_m,
                "score": score.ravel(),
                "correct": score.ravel() > 0,
                "contested": [False] * (n * m),
                "decided_by": ["numeric"] * (n * m),
            }
        ),
        "responses": pa.table(
            {
                "query_id": long_q,
                "model_id": long_m,
                "prompt_tokens": pa.array([10] * (n * m), pa.int64()),
                "completion_tokens": pa.array([20] * (n * m), pa.int64()),
                "cost_usd": usd.ravel(),
                "latency_s": pa.array([None] * (n * m), pa.float64()),
            }
        ),
        "embeddings": pa.table(
            {
                "query_id": qid,
                "encoder": ["planted"] * n,
                "vector": pa.array(vectors.astype("f4").tolist(), pa.list_(pa.float32())),
            }
        ),
        "splits": pa.table({"scheme": ["dense"] * n, "query_id": qid, "split": splits}),
    }


@pytest.fixture(scope="session")
def tables() -> Callable[..., dict[str, pa.Table]]:
    return planted_tables


@pytest.fixture(scope="session")
def core() -> Core:
    return from_tables(**planted_tables())
