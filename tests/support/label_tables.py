"""Small tables for tests of audit, relabelling and review."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from routeyard.schemas import QUERIES, RESPONSES


def qid(i: int) -> str:
    return f"q{i:020x}"


def question(i: int, **more: Any) -> dict[str, Any]:
    """A row of `queries`."""
    text = more.get("question", f"question {i}")
    return {
        "query_id": qid(i), "source": "s", "source_id": str(i), "task": "t", "domain": "d",
        "question": text, "prompt": text, "choices": [], "references": [str(i)],
        "scorer": "numeric", "metadata": "{}",
    } | more  # fmt: skip


def answer(i: int, model: str = "m", **more: Any) -> dict[str, Any]:
    """A row of `responses`."""
    row = {"query_id": qid(i), "model_id": model, "sample": 0, "status": "ok", "attempts": 1}
    return row | more


def verdict(i: int, scorer: str, outcome: str, **more: Any) -> dict[str, Any]:
    """A row of `verdicts`."""
    return {
        "query_id": qid(i), "model_id": "m", "sample": 0, "scorer": scorer, "scorer_version": "1",
        "outcome": outcome, "score": {"correct": 1.0, "incorrect": 0.0}.get(outcome),
        "conflict": False, "reason": "", "cost_usd": 0.0,
    } | more  # fmt: skip


def queries(references: list[str], scorer: str = "numeric") -> pa.Table:
    return QUERIES.from_rows(
        question(i, task=f"t{i % 2}", references=[reference], scorer=scorer)
        for i, reference in enumerate(references)
    )


def responses(texts: dict[str, list[str | None]], **more: list[Any]) -> pa.Table:
    """model → one text per query; None is a failed call. `given` → stored scores."""
    return RESPONSES.from_rows(
        answer(
            i,
            model,
            text=text,
            status="error" if text is None else "ok",
            given_score=more[model][i] if model in more else None,
        )
        for model, answers in texts.items()
        for i, text in enumerate(answers)
    )
