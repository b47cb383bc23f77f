"""Small tables for tests of audit, relabelling and review."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from routeyard.schemas import QUERIES, RESPONSES


def qid(i: int) -> str:
    return f"q{i:020x}"


def queries(references: list[str], scorer: str = "numeric") -> pa.Table:
    return QUERIES.from_rows(
        {
            "query_id": qid(i),
            "source": "s",
            "source_id": str(i),
            "task": f"t{i % 2}",
            "domain": "d",
            "question": f"question {i}",
            "prompt": f"question {i}",
            "choices": [],
            "references": [reference],
            "scorer": scorer,
            "metadata": "{}",
        }
        for i, reference in enumerate(references)
    )


def responses(texts: dict[str, list[str | None]], **more: list[Any]) -> pa.Table:
    """model → one text per query; None is a failed call. `given` → stored scores."""
    return RESPONSES.from_rows(
        {
            "query_id": qid(i),
            "model_id": model,
            "sample": 0,
            "text": text,
            "status": "error" if text is None else "ok",
            "attempts": 1,
            "given_score": more[model][i] if model in more else None,
        }
        for model, answers in texts.items()
        for i, text in enumerate(answers)
    )
