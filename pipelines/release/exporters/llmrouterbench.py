"""LLMRouterBench's tree: `results/bench/<dataset>/<split>/<model>/<model>.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.release.exporters.bundle import Exported, Exporter, numbers, pairs
from routeyard.pipelines.release.reader import OpenRelease

#: What the layout's loader adds up.
_NUMBERS = ("prompt_tokens", "completion_tokens", "cost_usd")


def write(release: OpenRelease, folder: Path, options: Mapping[str, str]) -> Exported:
    """One run per task, split and model; a run whose cost or tokens are unknown is left out.

    The layout's own loader adds costs and tokens up and fails at a null; 0 would say free.

    Raises:
        BadInput: no run is complete.
    """
    rows = pairs(release)
    index = numbers(release, "queries", "query_id")
    rows_left_out = 0
    runs: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        runs.setdefault((row["task"], row["split"], row["model_id"]), []).append(row)
    files, left_out = [], 0
    for (task, split, model), found in sorted(runs.items()):
        if any(row[name] is None for row in found for name in _NUMBERS):
            left_out += 1
            rows_left_out += len(found)
            continue
        folders = (_safe(task), _safe(split), _safe(model))
        path = Path("results/bench", *folders, f"{_safe(model)}.json")
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        run = _run(task, split, model, found, index)
        text = json.dumps(run, ensure_ascii=False, indent=1)
        (folder / path).write_text(text + "\n", encoding="utf-8")
        files.append(path.as_posix())
    if not files:
        raise BadInput(
            "no run has the cost and tokens of all its answers, which this layout needs",
            where=f"release {release.manifest.name}",
            next_step="state prices in the pool, or export another layout (embedllm, ulab)",
        )
    dropped = {"runs without all costs and tokens (files left out)": left_out} if left_out else {}
    return Exported(tuple(files), len(rows) - rows_left_out, dropped)


def _run(
    task: str, split: str, model: str, found: list[dict[str, Any]], index: Mapping[str, int]
) -> dict[str, Any]:
    # The layout's loader reads no time: one that is unknown is left out, and not 0.
    seconds = _total(found, "latency_s")
    return {
        "performance": sum(row["score"] for row in found) / len(found),
        **({} if seconds is None else {"time_taken": seconds}),
        "prompt_tokens": _total(found, "prompt_tokens"),
        "completion_tokens": _total(found, "completion_tokens"),
        "cost": _total(found, "cost_usd"),
        "counts": len(found),
        "model_name": model,
        "dataset_name": task,
        "split": split,
        "demo": False,
        "extra_metrics": {},
        "records": [
            {
                "index": index[row["query_id"]],
                "origin_query": row["question"],
                "prompt": row["prompt"],
                "prompt_tokens": row["prompt_tokens"],
                "completion_tokens": row["completion_tokens"],
                "cost": row["cost_usd"],
                "score": row["score"],
                "prediction": "",
                "ground_truth": row["references"],
                "raw_output": row["text"],
                "extra_fields": {"query_id": row["query_id"]},
            }
            for row in found
        ],
    }


def _total(found: list[dict[str, Any]], column: str) -> float | None:
    values = [row[column] for row in found]
    return None if None in values else sum(values)


def _safe(name: str) -> str:
    """A name as one folder: no separator, not hidden."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).lstrip(".")[:120] or "unnamed"


EXPORTER = Exporter("llmrouterbench", "LLMRouterBench", (), write)
