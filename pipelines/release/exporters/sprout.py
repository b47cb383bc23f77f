"""SPROUT's Parquet files: one row per query, and one struct of tokens and score per model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.pipelines.release.exporters.bundle import Exported, Exporter, numbers, pairs
from routeyard.pipelines.release.reader import OpenRelease

_SPLITS = ("train", "validation", "test")
_COLUMNS = ("key", "dataset", "dataset level", "dataset idx", "prompt", "golden_answer")
_CELL = pa.struct(
    [
        ("judge_response", pa.string()),
        ("num_input_tokens", pa.int64()),
        ("num_output_tokens", pa.int64()),
        ("response", pa.string()),
        ("score", pa.float64()),
    ]
)


def write(release: OpenRelease, folder: Path, options: Mapping[str, str]) -> Exported:
    """A pair without a label is a null struct; the layout holds tokens, and no dollars."""
    rows = pairs(release)
    index = numbers(release, "queries", "query_id")
    models = [*numbers(release, "models", "model_id")]
    schema = pa.schema([(name, pa.string()) for name in _COLUMNS] + [(m, _CELL) for m in models])
    files = []
    (folder / "data").mkdir()
    for split in _SPLITS:
        found: dict[str, dict[str, Any]] = {}
        for row in (row for row in rows if row["split"] == split):
            query = found.setdefault(row["query_id"], _query(row, index[row["query_id"]]))
            query[row["model_id"]] = {
                "num_input_tokens": row["prompt_tokens"],
                "num_output_tokens": row["completion_tokens"],
                "response": row["text"],
                "score": row["score"],
            }
        name = f"data/{split}-00000-of-00001.parquet"
        pq.write_table(pa.Table.from_pylist(list(found.values()), schema), folder / name)
        files.append(name)
    costs = sum(row["cost_usd"] is not None for row in rows)
    return Exported(tuple(files), len(rows), {"costs in dollars": costs} if costs else {})


def _query(row: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {
        "key": row["query_id"],
        "dataset": row["task"],
        "dataset idx": str(number),
        "prompt": row["prompt"],
        "golden_answer": row["references"][0] if row["references"] else None,
    }


EXPORTER = Exporter("sprout", "SPROUT", (), write)
