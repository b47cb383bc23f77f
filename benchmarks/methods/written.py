"""A release as bare tables in a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

#: Split of the questions in turn.
PART = ("train", "train", "train", "validation", "test")


def write(folder: Path, tables: dict[str, pa.Table]) -> Path:
    (folder / "data").mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        unfinished = folder / "data" / f".{name}.{os.getpid()}"
        pq.write_table(table, unfinished)
        unfinished.replace(folder / "data" / f"{name}.parquet")
    return folder
