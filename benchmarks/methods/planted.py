"""Made-up hidden states, of which one layer knows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.methods.written import PART, write


def planted(folder: Path, seed: int) -> Path:
    """Six layers, of which the fourth knows whether `small` is right."""
    from routeyard.schemas import HIDDEN_STATES, LABELS, MODELS, QUERIES, SPLITS

    rng = np.random.default_rng(seed)
    n, layers, width, knows = 600, 6, 16, 3
    states = 2 * rng.normal(size=(n, layers, width))
    states[:, knows] /= 2
    direction = np.random.default_rng(99).normal(size=width) + 0.3 * rng.normal(size=width)
    direction *= 2.5 / np.linalg.norm(direction)
    right = rng.random(n) < 1 / (1 + np.exp(-(states[:, knows] @ direction)))
    strong = rng.random(n) < 0.9
    ids = [f"q{seed}{i:019x}" for i in range(n)]
    tables = {
        "queries": QUERIES.from_rows(
            {
                "query_id": q, "source": "planted", "source_id": q, "task": "t",
                "domain": "general", "question": q, "prompt": q, "choices": [],
                "references": ["1"], "scorer": "em", "metadata": "{}",
            }
            for q in ids
        ),
        "models": MODELS.from_rows(
            {"model_id": m, "kind": "real", "simulated": True} for m in ("small", "large")
        ),
        "labels": LABELS.from_rows(
            {
                "query_id": q, "model_id": m, "score": float(y[i]), "correct": bool(y[i]),
                "decided_by": "em", "contested": False, "n_samples": 1,
            }
            for m, y in (("small", right), ("large", strong))
            for i, q in enumerate(ids)
        ),
        "splits": SPLITS.from_rows(
            {"scheme": "dense", "query_id": q, "split": PART[i % 5]} for i, q in enumerate(ids)
        ),
        "hidden_states": HIDDEN_STATES.from_rows(
            {
                "query_id": q, "model_id": "small", "layer": k,
                "vector": states[i, k].astype("f4").tolist(),
            }
            for i, q in enumerate(ids)
            for k in range(layers)
        ),
    }  # fmt: skip
    return write(folder, tables)
