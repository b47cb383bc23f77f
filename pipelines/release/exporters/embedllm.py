"""EmbedLLM's CSVs: one row per labelled pair, and the order of questions and models."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from pipelines.release.exporters.bundle import Exported, Exporter, pairs
from pipelines.release.reader import OpenRelease

_FILES = {"train": "train.csv", "validation": "val.csv", "test": "test.csv"}
_COLUMNS = ("prompt_id", "model_id", "model_name", "category", "prompt", "label")


def write(release: OpenRelease, folder: Path, options: Mapping[str, str]) -> Exported:
    """Ids are positions in `question_order.csv` and `model_order.csv`."""
    rows = pairs(release)
    queries = release.arrow("queries").select(["query_id", "prompt"]).to_pylist()
    models = release.arrow("models").column("model_id").to_pylist()
    q_index = {row["query_id"]: i for i, row in enumerate(queries)}
    m_index = {model: i for i, model in enumerate(models)}
    graded = sum(row["score"] not in (0.0, 1.0) for row in rows)
    for split, name in _FILES.items():
        with (folder / name).open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(_COLUMNS)
            for row in rows:
                if row["split"] == split:
                    q, m = q_index[row["query_id"]], m_index[row["model_id"]]
                    label = int(row["correct"])
                    writer.writerow([q, m, row["model_id"], row["task"], row["prompt"], label])
    _order(folder / "question_order.csv", "prompt", [row["prompt"] for row in queries])
    _order(folder / "model_order.csv", "model_name", models)
    files = (*_FILES.values(), "question_order.csv", "model_order.csv")
    dropped = {"graded scores written as 0/1": graded} if graded else {}
    return Exported(files, len(rows), dropped)


def _order(path: Path, column: str, values: list[str]) -> None:
    ids = "prompt_id" if column == "prompt" else "model_id"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([ids, column])
        writer.writerows(enumerate(values))


EXPORTER = Exporter("embedllm", "EmbedLLM", (), write)
