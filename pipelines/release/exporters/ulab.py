"""ulab LLMRouter's JSONL: `default_routing_{train,validation,test}_data.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routeyard.pipelines.release.exporters.bundle import (
    Exported,
    Exporter,
    numbers,
    pairs,
    write_jsonl,
)
from routeyard.pipelines.release.reader import OpenRelease

_SPLITS = ("train", "validation", "test")


def write(release: OpenRelease, folder: Path, options: Mapping[str, str]) -> Exported:
    """One line per labelled pair; tokens and times that are not known are null."""
    rows = pairs(release)
    index = numbers(release, "queries", "query_id")
    files = tuple(f"default_routing_{split}_data.jsonl" for split in _SPLITS)
    for split, name in zip(_SPLITS, files, strict=True):
        lines = (_line(row, index[row["query_id"]]) for row in rows if row["split"] == split)
        write_jsonl(folder / name, lines)
    return Exported(files, len(rows))


def _line(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    used = (row["prompt_tokens"], row["completion_tokens"])
    return {
        "task_name": row["task"],
        "query": row["prompt"],
        "ground_truth": row["references"][0] if row["references"] else None,
        "metric": row["scorer"],
        "choices": json.dumps(row["choices"], ensure_ascii=False),
        "task_id": row["query_id"],
        "model_name": row["model_id"],
        "response": row["text"],
        "token_num": None if None in used else sum(used),
        "input_tokens": row["prompt_tokens"],
        "output_tokens": row["completion_tokens"],
        "response_time": row["latency_s"],
        "performance": row["score"],
        "embedding_id": number,
    }


EXPORTER = Exporter("ulab", "ulab LLMRouter", (), write)
