"""A submission in RouterArena's layout, with the score it will get read back off the file.

Layout as the importer of the same name reads it (`pipelines/ingest/importers/routerarena.py`):
a JSON list with one object per question.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.arrays import Ints
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.io.staging import replacing
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.metrics.arena import arena_score
from routeyard.pipelines.metrics.selection import at_choice
from routeyard.schemas.statuses import ANSWERLESS


def rows(tables: Mapping[str, pa.Table], test: Core, choice: Ints) -> list[dict[str, Any]]:
    """One object per question: the chosen model's answer, its tokens, label and cost.

    The index is the question's id in its source where the source's ids are unique
    among the test questions, else our query_id.

    Raises:
        BadInput: a chosen model has no answer, label or cost of a question; what is
            not known cannot be sent as zero.
    """
    asked = {row["query_id"]: row for row in _columns(tables, "queries", _QUERY)}
    wanted = {(q, test.model_ids[m]) for q, m in zip(test.query_ids, choice, strict=True)}
    answers: dict[tuple[str, str], dict[str, Any]] = {}
    for row in _columns(tables, "responses", _RESPONSE):
        key = (row["query_id"], row["model_id"])
        if key in wanted and row["status"] not in (*ANSWERLESS, "refused"):
            answers.setdefault(key, row)
    cost = test.costs.get("usd")
    score = at_choice(test.labels, choice)
    paid = np.full(len(choice), np.nan) if cost is None else at_choice(cost, choice)
    ids = [asked[q]["source_id"] for q in test.query_ids]
    unique = len(set(ids)) == len(ids)
    out = []
    for k, query in enumerate(test.query_ids):
        model = test.model_ids[choice[k]]
        answer = answers.get((query, model))
        lacks = "answer" if answer is None else "label" if np.isnan(score[k]) else None
        lacks = lacks or ("cost" if np.isnan(paid[k]) else None)
        if lacks is not None or answer is None:
            raise BadInput(
                f"{model} has no {lacks} for question {query}",
                next_step="choose a model that has, or build the release without the question",
            )
        tokens = [answer["prompt_tokens"], answer["completion_tokens"]]
        usage = {"input_tokens": tokens[0], "output_tokens": tokens[1], "total_tokens": None}
        if None not in tokens:
            usage["total_tokens"] = sum(tokens)
        out.append(
            {
                "global index": ids[k] if unique else query,
                "prompt": asked[query]["prompt"],
                "prediction": model,
                "generated_result": {
                    "generated_answer": answer["text"], "success": True, "token_usage": usage,
                    "provider": answer["provider"], "error": None,
                },
                "accuracy": float(score[k]),
                "cost": float(paid[k]),
            }
        )  # fmt: skip
    return out


_QUERY = ("query_id", "source_id", "prompt")
_RESPONSE = (
    "query_id", "model_id", "text", "status", "provider", "prompt_tokens", "completion_tokens",
)  # fmt: skip


def _columns(
    tables: Mapping[str, pa.Table], name: str, columns: tuple[str, ...]
) -> list[dict[str, Any]]:
    if name not in tables:
        raise BadInput(f"the release has no table {name!r}, which a submission is made of")
    found: list[dict[str, Any]] = tables[name].select(list(columns)).to_pylist()
    return found


def write(path: Path, made: list[dict[str, Any]], test: Core, choice: Ints) -> float:
    """Write the file, read it back and hold its score against the release's; the score.

    Raises:
        BadInput: the file's score is not the one that labels and costs of the release give.
    """
    with replacing(path) as unfinished:
        text = json.dumps(made, ensure_ascii=False, indent=1) + "\n"
        unfinished.write_text(text, encoding="utf-8")
        back = json.loads(unfinished.read_text(encoding="utf-8"))
        found = score_of(back)
        wanted = float(
            arena_score(
                float(at_choice(test.labels, choice).mean()),
                1000 * float(at_choice(test.costs["usd"], choice).mean()),
            )
        )
        if len(back) != test.n_queries or abs(found - wanted) > 1e-9:
            raise BadInput(
                f"the file would score {found:.6f}, and the release says {wanted:.6f}",
                next_step="report this: the two are computed from the same answers",
            )
    return found


def score_of(made: list[dict[str, Any]]) -> float:
    """Arena score of a file: mean accuracy, and cost per 1,000 questions.

    >>> score_of([{"accuracy": 1.0, "cost": 0.0044 / 1000}])
    1.0
    """
    accuracy = float(np.mean([row["accuracy"] for row in made]))
    return float(arena_score(accuracy, 1000 * float(np.mean([row["cost"] for row in made]))))
