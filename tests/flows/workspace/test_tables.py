"""Tables that stages left in the workspace: read once while a build keeps them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.flows.workspace import keeping, of_models, read_all
from routeyard.schemas import SPLITS


def _write(folder: Path, query: str) -> None:
    rows = [{"query_id": query, "scheme": "dense", "split": "test"}]
    pq.write_table(SPLITS.from_rows(rows), folder / "splits.parquet")


def test_tables_are_kept_inside_only_and_while_their_files_stay(tmp_path: Path) -> None:
    _write(tmp_path, "a")
    with keeping():
        first = read_all(tmp_path)
        assert read_all(tmp_path)["splits"] is first["splits"]
        assert read_all(tmp_path) is not first
        _write(tmp_path, "another")
        assert read_all(tmp_path)["splits"].column("query_id").to_pylist() == ["another"]
    assert read_all(tmp_path)["splits"] is not read_all(tmp_path)["splits"]


def test_rows_of_all_models_are_no_copy() -> None:
    table = pa.table({"model_id": ["a", "b", "a"]})
    assert of_models(table, pa.table({"model_id": ["b", "a"]})) is table
    assert of_models(table, pa.table({"model_id": ["a"]})).num_rows == 2
    assert of_models(table.slice(0, 0), pa.table({"model_id": ["a"]})).num_rows == 0
