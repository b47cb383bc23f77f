"""EmbedLLM's CSVs: one row per labelled pair, and the order of questions and models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from routeyard.pipelines.release.exporters.bundle import (
    Exported,
    Exporter,
    numbers,
    pairs,
    write_csv,
)
from routeyard.pipelines.release.reader import OpenRelease

_FILES = {"train": "train.csv", "validation": "val.csv", "test": "test.csv"}
_COLUMNS = ("prompt_id", "model_id", "model_name", "category", "prompt", "label")


def write(release: OpenRelease, folder: Path, options: Mapping[str, str]) -> Exported:
    """Ids are positions in `question_order.csv` and `model_order.csv`."""
    rows = pairs(release)
    queries = numbers(release, "queries", "query_id")
    models = numbers(release, "models", "model_id")
    graded = sum(row["score"] not in (0.0, 1.0) for row in rows)
    for split, name in _FILES.items():
        cells = (
            (
                queries[row["query_id"]], models[row["model_id"]], row["model_id"], row["task"],
                row["prompt"], int(row["correct"]),
            )
            for row in rows
            if row["split"] == split
        )  # fmt: skip
        write_csv(folder / name, _COLUMNS, cells)
    prompts = release.arrow("queries").column("prompt").to_pylist()
    write_csv(folder / "question_order.csv", ("prompt_id", "prompt"), enumerate(prompts))
    write_csv(folder / "model_order.csv", ("model_id", "model_name"), enumerate(models))
    files = (*_FILES.values(), "question_order.csv", "model_order.csv")
    dropped = {"graded scores written as 0/1": graded} if graded else {}
    return Exported(files, len(rows), dropped)


EXPORTER = Exporter("embedllm", "EmbedLLM", (), write)
