"""Tables of a release written from the columns that a test states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.schemas import CONTRACTS


def contract_table(name: str, columns: Mapping[str, Any]) -> pa.Table:
    """A table that keeps its contract: columns which are not given hold nulls."""
    contract = CONTRACTS[name]
    size = len(next(iter(columns.values())))
    given = pa.table(dict(columns))
    arrays = [
        given[c.name].cast(c.type) if c.name in columns else pa.nulls(size, c.type)
        for c in contract.columns
    ]
    return pa.Table.from_arrays(arrays, schema=contract.schema)


def write_tables(folder: Path, tables: Mapping[str, Mapping[str, Sequence[Any]]]) -> Path:
    """Each table as `data/<name>.parquet`; returns the folder."""
    (folder / "data").mkdir(parents=True)
    for name, columns in tables.items():
        pq.write_table(contract_table(name, columns), folder / "data" / f"{name}.parquet")
    return folder
