"""A small release whose questions are told apart by their words."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.support.contract_tables import write_tables

WORDS = ("integral limit derivative", "river castle king treaty")


def worded_release(folder: Path) -> Path:
    """200 questions of two kinds told apart by their words, a model for each; no embeddings."""
    rng = np.random.default_rng(0)
    n, names = 200, ("left", "right", "weak")
    ids = [f"q{i:020x}" for i in range(n)]
    kind = rng.integers(0, 2, n)
    texts = [f"{' '.join(rng.choice(WORDS[k].split(), 4))} number {i}" for i, k in enumerate(kind)]
    cells = [(i, k) for i in range(n) for k in range(3)]
    right = [bool(rng.random() < (0.9 if kind[i] == k else 0.25)) for i, k in cells]
    base = {"query_id": [ids[i] for i, _ in cells], "model_id": [names[k] for _, k in cells]}
    size = len(cells)
    tables = {
        "queries": {
            "query_id": ids, "source": ["toy"] * n, "source_id": [str(i) for i in range(n)],
            "task": ["toy"] * n, "domain": ["toy"] * n, "question": texts, "prompt": texts,
            "choices": [[]] * n, "references": [["1"]] * n, "scorer": ["numeric"] * n,
            "metadata": ["{}"] * n,
        },
        "models": {"model_id": names, "kind": ["real"] * 3, "simulated": [True] * 3},
        "labels": {
            **base, "score": [float(r) for r in right], "correct": right,
            "decided_by": ["numeric"] * size, "contested": [False] * size, "n_samples": [1] * size,
        },
        "responses": {
            **base, "sample": [0] * size, "text": ["a"] * size, "status": ["ok"] * size,
            "attempts": [1] * size, "cost_usd": [0.001 * (k + 1) for _, k in cells],
            "cost_source": ["provider"] * size,
        },
        "splits": {
            "scheme": ["dense"] * n, "query_id": ids,
            "split": [("train", "train", "validation", "test")[i % 4] for i in range(n)],
        },
    }  # fmt: skip
    return write_tables(folder, tables)
