"""Long tables in parts: as a table in memory, whatever a file's encoding of ids."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.common.staging import column_batches, positions
from routeyard.schemas import StoredTable

TABLE = pa.table({"query_id": [f"q{i // 2}" for i in range(10)], "score": list(range(10))})


@pytest.mark.parametrize("encoding", ["RLE_DICTIONARY", "DELTA_BYTE_ARRAY", "PLAIN"])
def test_a_file_gives_what_the_table_gives(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "table.parquet"
    # A release stores ids that hardly repeat by differences, which Arrow reads in one way only.
    plain = {"use_dictionary": False, "column_encoding": {"query_id": encoding}}
    how = {"use_dictionary": ["query_id"]} if encoding == "RLE_DICTIONARY" else plain
    pq.write_table(TABLE, path, row_group_size=3, **how)
    known = pa.array(["q4", "q0", "q1"])
    found = {}
    for name, table in {"memory": TABLE, "file": StoredTable(path)}.items():
        read = list(column_batches(table, ["query_id", "score"]))
        at = [positions(part.column("query_id"), known) for part in read]
        found[name] = np.concatenate(at).tolist()
        assert pa.concat_arrays([p.column("score") for p in read]).to_pylist() == list(range(10))
    assert found["file"] == found["memory"] == [1, 1, 2, 2, -1, -1, -1, -1, 0, 0]
    assert len(list(column_batches(StoredTable(path), ["score"]))) == 4


def test_nothing_and_nulls_have_no_position(tmp_path: Path) -> None:
    empty = TABLE.slice(0, 0)
    pq.write_table(empty, tmp_path / "empty.parquet")
    assert (
        sum(
            p.num_rows
            for p in column_batches(StoredTable(tmp_path / "empty.parquet"), ["query_id"])
        )
        == 0
    )
    assert positions(pa.array([None, "a"], pa.string()), pa.array(["a"])).tolist() == [-1, 0]
