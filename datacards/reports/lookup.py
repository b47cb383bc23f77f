"""What a report's look-up shows: questions with every model's answer, and what routers chose."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.datacards.site.shards import EXCERPT, index_columns, sample

#: Characters of text a report holds at most; excerpts shrink to fit.
BUDGET = 32_000_000
LONGEST_ANSWER = 1200
LONGEST_QUESTION = 2000
#: Questions that the page unpacks at once.
AT_ONCE = 40

#: What a cell says of its answers → the column.
_METERED = {
    "cost": "cost_usd", "in": "prompt_tokens", "out": "completion_tokens", "latency": "latency_s",
}  # fmt: skip

Row = dict[str, Any]
#: (query_id, model_id) → rows of one table.
Pairs = dict[tuple[str, str], list[Row]]


def lookup(
    tables: Mapping[str, pa.Table],
    query_ids: Sequence[str],
    choices: pa.Table | None = None,
    *,
    budget: int = BUDGET,
) -> dict[str, Any]:
    """JSON-ready look-up of the questions `query_ids`, as the site's questions page reads it.

    Args:
        tables: release tables `queries`, `models`, `labels` and, if at hand,
            `responses` and `verdicts`.
        choices: query_id, router, model_id rows: what each router chose.
        budget: characters of answers and questions together; every answer is
            cut at the same length so that all fit, and the cut is stated.

    Returns:
        `meta` (models, tasks, counts), `index` (columns to search) and `answers`, lists of
        at most `AT_ONCE` questions: prompt, references, one cell per model that has a label
        or an answer, and the routers' choices.
    """
    wanted = pa.array(list(query_ids), pa.string())
    models = sorted(tables["models"].column("model_id").to_pylist())
    rows = sorted(_rows(tables["queries"], wanted), key=lambda row: str(row["query_id"]))
    longest = max(1, min(LONGEST_ANSWER, budget // max(1, len(rows) * max(1, len(models)))))
    labels = _pairs(tables["labels"], wanted)
    answers = _pairs(tables.get("responses"), wanted)
    verdicts = _pairs(tables.get("verdicts"), wanted)
    chosen: dict[str, list[list[Any]]] = defaultdict(list)
    place = {name: k for k, name in enumerate(models)}
    for row in [] if choices is None else _rows(choices, wanted):
        chosen[row["query_id"]].append([row["router"], place[row["model_id"]]])
    questions = []
    for row in rows:
        key = row["query_id"]
        cells = [
            _cell(k, labels.get((key, m)), answers.get((key, m)), verdicts.get((key, m)), longest)
            for k, m in enumerate(models)
            if (key, m) in labels or (key, m) in answers
        ]
        questions.append(_question(row, cells, sorted(chosen[key])))
    tasks = sorted({str(row["task"]) for row in rows})
    return {
        "meta": {
            "models": models,
            "tasks": tasks,
            "questions": len(rows),
            "indexed": max(1, len(rows)),
            "answered": AT_ONCE,
            "longest": longest,
        },
        "index": index_columns(
            [_indexed(one, len(models)) for one in questions], tasks, [], len(models)
        ),
        "answers": [questions[k : k + AT_ONCE] for k in range(0, len(questions), AT_ONCE)],
    }


def _rows(table: pa.Table, wanted: pa.Array) -> list[Row]:
    found: list[Row] = table.filter(
        pc.is_in(table.column("query_id"), value_set=wanted)
    ).to_pylist()
    return found


def _pairs(table: pa.Table | None, wanted: pa.Array) -> Pairs:
    found: Pairs = defaultdict(list)
    for row in [] if table is None else _rows(table, wanted):
        found[row["query_id"], row["model_id"]].append(row)
    return found


def _question(row: Row, cells: list[Row], routers: list[list[Any]]) -> Row:
    return {
        "query_id": row["query_id"],
        "task": row["task"],
        "domain": row.get("domain"),
        "source": row.get("source"),
        "scorer": row.get("scorer"),
        "prompt": row["prompt"][:LONGEST_QUESTION],
        "length": len(row["prompt"]),
        "references": list(row.get("references") or []),
        "cells": cells,
        "routers": routers,
    }


def _cell(
    model: int,
    labels: list[Row] | None,
    answers: list[Row] | None,
    verdicts: list[Row] | None,
    longest: int,
) -> Row:
    label: Row = labels[0] if labels else {}
    samples = []
    for answer in sorted(answers or [], key=lambda row: row["sample"]):
        told = [_verdict(v) for v in verdicts or [] if v["sample"] == answer["sample"]]
        told.sort(key=lambda row: str(row["scorer"]))
        samples.append(sample(answer["status"], answer["text"], told, longest))
    return {
        "model": model,
        "score": label.get("score"),
        "correct": label.get("correct"),
        "by": label.get("decided_by"),
        "contested": bool(label.get("contested")),
        **_metered(answers or []),
        "samples": samples,
    }


def _verdict(row: Row) -> Row:
    """A verdict under the names that the page reads."""
    of, read = row.get, row.get("extracted")
    return {
        "scorer": of("scorer"), "version": of("scorer_version"), "outcome": of("outcome"),
        "score": of("score"), "read": read and read[:80], "reason": of("reason"),
        "cost": of("cost_usd"), "span_start": of("span_start"), "span_end": of("span_end"),
    }  # fmt: skip


def _metered(answers: list[Row]) -> Row:
    """Means over the samples of one pair; one that is not known makes the mean unknown."""
    return {short: _mean([row.get(name) for row in answers]) for short, name in _METERED.items()}


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _indexed(question: Row, models: int) -> Row:
    """What the page searches of a question."""
    signs = ["-"] * models
    for cell in question["cells"]:
        if cell["score"] is not None:
            signs[cell["model"]] = "1" if cell["correct"] else "0"
    judged = [cell for cell in question["cells"] if cell["score"] is not None]
    return {
        **question,
        "text": " ".join(question["prompt"].split())[:EXCERPT],
        "judged": len(judged),
        "total": sum(bool(cell["correct"]) for cell in judged) if judged else None,
        "contested": sum(cell["contested"] for cell in question["cells"]),
        "duplicate_group": None,
        "outcomes": "".join(signs),
    }
