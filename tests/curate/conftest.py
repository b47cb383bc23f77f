"""Small tables that stand in for a benchmark."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from routeyard.schemas import EMBEDDINGS, LABELS, MODELS, QUERIES


def identify(name: str) -> str:
    """A query_id for a short name."""
    return "q" + hashlib.sha256(name.encode()).hexdigest()[:20]


@pytest.fixture
def qid() -> Callable[[str], str]:
    return identify


@pytest.fixture
def make_queries() -> Callable[..., pa.Table]:
    def make(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        defaults = {
            "source": "s", "task": "t", "domain": "general", "choices": [], "references": ["1"],
            "scorer": "numeric", "metadata": "{}",
        }  # fmt: skip
        full = []
        for number, row in enumerate(rows):
            name = str(row.get("name", number))
            question = row.get("question", f"question {name}")
            full.append(
                {
                    **defaults,
                    "query_id": identify(name),
                    "source_id": name,
                    "question": question,
                    "prompt": question,
                    **{key: value for key, value in row.items() if key != "name"},
                }
            )
        return QUERIES.from_rows(full)

    return make


@pytest.fixture
def make_models() -> Callable[..., pa.Table]:
    def make(names: Sequence[str], **columns: Sequence[Any]) -> pa.Table:
        return MODELS.from_rows(
            {
                "model_id": name,
                "kind": "real",
                "simulated": False,
                **{key: values[place] for key, values in columns.items()},
                **({"price_date": "2026-01-01"} if columns else {}),
            }
            for place, name in enumerate(names)
        )

    return make


@pytest.fixture
def make_labels() -> Callable[..., pa.Table]:
    def make(cells: Sequence[tuple[str, str, bool | None]]) -> pa.Table:
        """(query_id, model_id, correct); None is undecided."""
        return LABELS.from_rows(
            {
                "query_id": query,
                "model_id": model,
                "score": None if correct is None else float(correct),
                "correct": None if correct is None else bool(correct),
                "decided_by": None if correct is None else "numeric",
                "contested": False,
                "n_samples": 1,
            }
            for query, model, correct in cells
        )

    return make


@pytest.fixture
def make_embeddings() -> Callable[..., pa.Table]:
    def make(
        ids: Sequence[str],
        vectors: np.ndarray[Any, Any],
        seen: Sequence[int | None] | None = None,
    ) -> pa.Table:
        return EMBEDDINGS.conform(
            pa.table(
                {
                    "query_id": list(ids),
                    "encoder": ["e"] * len(ids),
                    "seen_chars": pa.array(seen or [None] * len(ids), pa.int64()),
                    "vector": pa.array(list(vectors.astype(np.float32)), pa.list_(pa.float32())),
                }
            )
        )

    return make
