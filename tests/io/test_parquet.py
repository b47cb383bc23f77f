"""Parquet files of some bytes that hold gigabytes, and files that only look like it."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.common import files, untrusted
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.isolation import parquet_file
from routeyard.pipelines.common.untrusted import RELEASED, bounded
from tests.isolation import in_child

MANY, LONG = 2_000, "z" * 2_000


def same(text: str = LONG, count: int = MANY) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([text]))


def plain(**more: Any) -> dict[str, Any]:
    return {"use_dictionary": False, "compression": "zstd", **more}


#: name: (columns, how they are written). Each comes to 4 MB, from at most 19 kB.
BOMBS: dict[str, tuple[Callable[[], dict[str, Any]], dict[str, Any]]] = {
    "a text that rows point to": (lambda: {"a": same()}, {}),
    "the same within lists": (
        lambda: {"a": pa.array([[LONG] * (MANY // 2)] * 2)},
        {},
    ),
    "the same within a map in a struct": (
        lambda: {
            "a": pa.array(
                [{"b": [("k", LONG)] * (MANY // 2)}] * 2,
                pa.struct({"b": pa.map_(pa.string(), pa.string())}),
            )
        },
        {},
    ),
    "a text that repeats the last": (
        lambda: {"a": [LONG] * MANY},
        plain(column_encoding={"a": "DELTA_BYTE_ARRAY"}),
    ),
    "and within lists": (
        lambda: {"a": [[LONG] * MANY]},
        plain(column_encoding={"a": "DELTA_BYTE_ARRAY"}),
    ),
    "what was packed": (lambda: {"a": [LONG] * MANY}, plain()),
    "in pages of the second kind": (
        lambda: {"a": same()},
        {"data_page_version": "2.0", "compression": "gzip"},
    ),
    "numbers that are all alike": (
        lambda: {"a": np.zeros(500_000)},
        {"compression": "brotli", "row_group_size": 500_000},
    ),
    "nothing, half a million times": (
        lambda: {"a": pa.nulls(500_000, pa.int64())},
        {"compression": "zstd", "row_group_size": 500_000},
    ),
}


def bomb(path: Path, name: str) -> Path:
    columns, how = BOMBS[name]
    pq.write_table(pa.table(columns()), path, store_schema=False, **how)
    return path


@pytest.mark.parametrize("name", BOMBS)
def test_what_unfolds_to_more_than_a_person_writes_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 462 bytes held 900 MB, and a source's reader, `verify` and `evaluate` took them all.
    path = bomb(tmp_path / "rows.parquet", name)
    monkeypatch.setattr(untrusted, "ANYWAY", 3_800_000)
    assert path.stat().st_size * untrusted.MAX_RATIO < 3_800_000
    before = pa.total_allocated_bytes()
    with pytest.raises(SourceError, match="unfolds to more than 3,800,000 bytes") as caught:
        list(files.rows(path))
    assert caught.value.next_step
    assert pa.total_allocated_bytes() - before < 1_000_000
    monkeypatch.setattr(untrusted, "ANYWAY", 9_000_000)
    assert bounded(path) == path


def test_lengths_that_pages_leave_open_are_added_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A long text in the dictionary that few rows point to, beside a short one, is no bomb.
    rows = pa.array([0] * 3 + [1] * 5_000 + [None] * 7, pa.int32())
    column = pa.DictionaryArray.from_arrays(rows, pa.array([LONG, "a"]))
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": column, "b": [LONG] * 5_010}), path, store_schema=False)
    for least, fits in ((5_000, False), (15_000_000, True)):
        monkeypatch.setattr(untrusted, "ANYWAY", least)
        if fits:
            assert bounded(path, 1)
        else:
            with pytest.raises(SourceError, match="unfolds"):
                bounded(path, 1)
    pq.write_table(pa.table({"a": column}), path, store_schema=False)
    # Of 3 × 2,000 + 5,000 bytes of text, and 4 for each position.
    assert parquet_file.size(str(path), 1 << 20) == 3 * 2_000 + 5_000 + 4 * 5_010


def test_a_table_of_a_release_may_say_the_same_in_millions_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untrusted, "ANYWAY", 1_000)
    path = tmp_path / "labels.parquet"
    pq.write_table(pa.table({"a": np.zeros(300_000)}), path, compression="zstd")
    with pytest.raises(SourceError, match="unfolds"):
        bounded(path)
    assert bounded(path, RELEASED)


def test_rows_without_columns_are_refused(tmp_path: Path) -> None:
    # A footer alone can say that there are as many as one likes.
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({}), path)
    assert bounded(path)
    none, nine = (b"\x16" + varint(rows) + b"\x19" for rows in (0, 9))  # before the row groups
    assert path.read_bytes().count(none) == 1
    path.write_bytes(path.read_bytes().replace(none, nine))
    assert pq.read_metadata(path).num_rows == 9
    with pytest.raises(SourceError, match="unfolds"):
        bounded(path)


@pytest.mark.parametrize("at", [4, 5, 6, 7, 8, 10])
def test_a_page_header_that_cannot_be_read_is_a_damaged_file(tmp_path: Path, at: int) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": ["x", "y"]}), path)
    data = bytearray(path.read_bytes())
    data[at] = 0xFF
    path.write_bytes(data)
    with pytest.raises(SourceError, match="cannot be read"):
        bounded(path)


def test_a_column_whose_name_is_no_text_is_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"name": [1]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"name", b"\xb9ame"))
    with pytest.raises(SourceError, match="cannot be read"):
        bounded(path)


def test_a_footer_that_belittles_its_pages_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The footer says of each column chunk how large it is; readers go by the pages.
    path = bomb(tmp_path / "rows.parquet", "what was packed")
    about = pq.read_metadata(path).row_group(0).column(0)
    size = about.total_uncompressed_size
    written = varint(size)
    data = path.read_bytes()
    assert data.count(written) >= 1
    path.write_bytes(data.replace(written, varint(1 << (7 * len(written) - 8))))
    assert pq.read_metadata(path).row_group(0).column(0).total_uncompressed_size < size / 2
    monkeypatch.setattr(untrusted, "ANYWAY", 3_800_000)
    with pytest.raises(SourceError, match="unfolds"):
        bounded(path)


def varint(number: int) -> bytes:
    """A number as Thrift's compact protocol writes it (zigzag)."""
    number, found = number << 1, bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def test_rows_that_are_abandoned_leave_no_process_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An import that ended in an error kept its rows in a traceback: a cycle of references.
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": range(100_000)}), path)
    monkeypatch.setattr(untrusted, "_idle", [])
    assert len(list(files.rows(path))) == 100_000
    gc.collect()
    cycle: list[Any] = [files.rows(path)]
    next(cycle[0])
    cycle.append(cycle)
    del cycle
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gc.collect()
    assert [str(one.message) for one in caught] == []
    assert len(list(files.rows(path))) == 100_000


def test_the_process_that_reads_files_does_without_pandas(tmp_path: Path) -> None:
    # Each conversion of Arrow's looks for pandas, which takes longer to import than most files.
    pq.write_table(pa.table({"a": [1]}), path := tmp_path / "a.parquet")
    with untrusted.reading(path, RELEASED) as (worker, _, limits):
        found = worker.call(in_child.converts_without_pandas, [1, 2], limits=limits)
    assert found == [[1, 2], False]
