"""What a report's look-up shows: a question with every model's answer, verdicts and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

#: Characters of text a report holds at most; excerpts shrink to fit.
BUDGET = 32_000_000
LONGEST_ANSWER = 1200
LONGEST_QUESTION = 2000


def lookup(
    tables: Mapping[str, pa.Table],
    query_ids: Sequence[str],
    choices: pa.Table | None = None,
    *,
    budget: int = BUDGET,
) -> dict[str, Any]:
    """JSON-ready look-up of the questions `query_ids`.

    Args:
        tables: release tables `queries`, `models`, `labels` and, if at hand,
            `responses` and `verdicts`.
        choices: query_id, router, model_id rows: what each router chose.
        budget: characters of answers and questions together; every answer is
            cut at the same length so that all fit, and the cut is stated.

    Returns:
        `models`, `excerpt` (characters per answer) and `queries`, each with id,
        task, text, references, one cell per model (or null) and the routers'
        choices. A cell is {score, correct, decided, cost, text, cut, verdicts}.
    """
    wanted = pa.array(list(query_ids), pa.string())
    models = sorted(tables["models"].column("model_id").to_pylist())
    place = {name: k for k, name in enumerate(models)}
    chosen = _chosen(choices, wanted, place)
    cells = _labels(tables["labels"], wanted, place)
    excerpt = min(LONGEST_ANSWER, budget // max(1, len(wanted) * max(1, len(models))))
    if "responses" in tables:
        _answers(tables["responses"], wanted, place, cells, excerpt)
    if "verdicts" in tables:
        _verdicts(tables["verdicts"], wanted, place, cells)
    rows = _only(tables["queries"], wanted).to_pylist()
    rows.sort(key=lambda row: row["query_id"])
    return {
        "models": models,
        "excerpt": excerpt,
        "queries": [
            {
                "id": row["query_id"],
                "task": row["task"],
                "text": row["prompt"][:LONGEST_QUESTION],
                "cut": len(row["prompt"]) > LONGEST_QUESTION,
                "references": list(row.get("references") or []),
                "cells": [cells.get((row["query_id"], k)) for k in range(len(models))],
                "routers": chosen.get(row["query_id"], {}),
            }
            for row in rows
        ],
    }


def _only(table: pa.Table, wanted: pa.Array) -> pa.Table:
    return table.filter(pc.is_in(table.column("query_id"), value_set=wanted))


def _chosen(
    choices: pa.Table | None, wanted: pa.Array, place: Mapping[str, int]
) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    if choices is not None:
        part = _only(choices, wanted).select(["query_id", "router", "model_id"])
        for row in part.to_pylist():
            found.setdefault(row["query_id"], {})[row["router"]] = place[row["model_id"]]
    return found


def _labels(
    labels: pa.Table, wanted: pa.Array, place: Mapping[str, int]
) -> dict[tuple[str, int], dict[str, Any]]:
    columns = ["query_id", "model_id", "score", "correct", "decided_by"]
    part = _only(labels, wanted).select(columns)
    return {
        (row["query_id"], place[row["model_id"]]): {
            "score": row["score"],
            "correct": row["correct"],
            "decided": row["decided_by"],
        }
        for row in part.to_pylist()
        if row["model_id"] in place
    }


def _answers(
    responses: pa.Table,
    wanted: pa.Array,
    place: Mapping[str, int],
    cells: dict[tuple[str, int], dict[str, Any]],
    excerpt: int,
) -> None:
    part = _only(responses, wanted)
    part = part.filter(pc.equal(part.column("sample"), 0))
    columns = ["query_id", "model_id", "status", "cost_usd", "text"]
    for row in part.select(columns).to_pylist():
        if row["model_id"] in place:
            cell = cells.setdefault((row["query_id"], place[row["model_id"]]), {})
            text = row["text"]
            # The end of an answer is where it commits; keep it when cutting.
            long = text is not None and len(text) > excerpt
            cell["text"] = text if not long else text[len(text) - excerpt :]
            cell["cut"] = long
            cell["cost"] = row["cost_usd"]
            cell["status"] = row["status"]


def _verdicts(
    verdicts: pa.Table,
    wanted: pa.Array,
    place: Mapping[str, int],
    cells: dict[tuple[str, int], dict[str, Any]],
) -> None:
    part = _only(verdicts, wanted)
    part = part.filter(pc.equal(part.column("sample"), 0))
    columns = ["query_id", "model_id", "scorer", "outcome", "extracted"]
    for row in sorted(part.select(columns).to_pylist(), key=lambda r: str(r["scorer"])):
        if row["model_id"] in place:
            cell = cells.setdefault((row["query_id"], place[row["model_id"]]), {})
            extracted = row["extracted"]
            cell.setdefault("verdicts", []).append(
                [row["scorer"], row["outcome"], None if extracted is None else extracted[:80]]
            )
