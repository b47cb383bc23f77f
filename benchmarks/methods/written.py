"""A release as bare tables in a folder."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

#: Split of the questions in turn.
PART = ("train", "train", "train", "validation", "test")


def write(folder: Path, tables: dict[str, pa.Table]) -> Path:
    (folder / "data").mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        pq.write_table(table, folder / "data" / f"{name}.parquet")
    return folder
