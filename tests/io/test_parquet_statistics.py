"""A stranger's footer: one that ends the process that reads it, and statistics that hide rows."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.common import files
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.untrusted import bounded, false_statistics

COLUMNS: dict[str, Any] = {
    "text": ["aaaa", None, "mmmm", "zzzz"],
    "number": [1, 2, None, 900_000],
    "share": [0.25, float("nan"), -1.5, None],
    "right": [True, False, None, True],
    "list": [["a", "b"], None, [], ["c"]],
    "object": [{"a.b": "x", "c": 1}, {"a.b": "y", "c": 2}, None, {"a.b": None, "c": 3}],
    "vector": pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float32(), 2)),
    "when": pa.array([1, 2, 3, None], pa.timestamp("us", "UTC")),
    "day": pa.array([1, 2, 3, None], pa.date32()),
    "small": pa.array([1, 2, 3, 255], pa.uint8()),
    "large": pa.array([1, 2, 3, 2**64 - 1], pa.uint64()),
    "kept": pa.array(["u", "v", "u", None]).dictionary_encode(),
    "nothing": pa.nulls(4, pa.string()),
    "money": pa.array([1, 2, 3, None], pa.decimal128(12, 3)),
    "half": pa.array(np.array([1, 2, 3, 4], np.float16)),
    "gpt-4.1": [0.0, 1.0, 0.0, 1.0],
    "gpt-4": [1.0, 1.0, 1.0, 1.0],
}


def written(path: Path, columns: dict[str, Any] | None = None, **how: Any) -> Path:
    pq.write_table(pa.table(columns or COLUMNS), path, **how)
    return path


def in_footer(path: Path, change: Callable[[bytes], bytes]) -> None:
    data = path.read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    changed = change(data[-8 - size : -8])
    assert changed != data[-8 - size : -8]
    path.write_bytes(data[: -8 - size] + changed + len(changed).to_bytes(4, "little") + b"PAR1")


def swapped(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data.replace(old, new)


#: Reads a file in a process of its own: before, it was ended.
_READ = """
import sys
from pathlib import Path
from routeyard.pipelines.common import files
from routeyard.pipelines.common.errors import SourceError
try:
    list(files.rows(Path(sys.argv[1])))
except SourceError as error:
    print(error.what)
"""


def test_a_footer_that_contradicts_itself_ends_no_process(tmp_path: Path) -> None:
    # What pyarrow raises while it looks at such a column is caught by nobody: SIGABRT.
    path = written(tmp_path / "rows.parquet", {"text": ["aaaa", None, "zzzz"]})
    # Of two levels, how often each occurs: one null, two values. Said of three.
    in_footer(path, swapped(b"\x19\x26\x02\x04", b"\x19\x36\x02\x04\x00"))
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "cannot be read" in done.stdout


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: b"\x15\x04\x05\x02\x04\x00",
    ],
)
def test_a_footer_that_is_none_is_a_damaged_file(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    path = written(tmp_path / "rows.parquet")
    in_footer(path, change)
    for read in (bounded, lambda path: list(files.rows(path)), false_statistics):
        with pytest.raises(SourceError, match="cannot be read"):
            read(path)


def test_lists_within_lists_without_end_are_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    numbers = {"a": list(range(20_000))}
    written(path, numbers, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[4 : 4 + 6_000] = b"\x19" * 6_000  # of the first page's header
    path.write_bytes(data)
    with pytest.raises(SourceError, match="cannot be read"):
        list(files.rows(path))


def test_a_column_that_has_two_names_is_a_damaged_file(tmp_path: Path) -> None:
    # Who looked it up by the one found nothing under the other: a traceback of `verify`.
    path = written(tmp_path / "rows.parquet", {"text": ["a", "b"]}, store_schema=False)
    in_footer(path, lambda data: data[::-1].replace(b"txet", b"txes", 1)[::-1])
    with pytest.raises(SourceError, match="not those of the schema"):
        list(files.rows(path))


def test_whatever_a_footer_holds_is_read_or_an_error_with_a_name(tmp_path: Path) -> None:
    chance = random.Random(0)
    path = written(tmp_path / "rows.parquet")
    whole = path.read_bytes()
    size = int.from_bytes(whole[-8:-4], "little")
    read = refused = 0
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 1, 2, 5])):
            at = len(whole) - 8 - size + chance.randrange(size // 2)
            data[at] = chance.choice([0, 255, 128, data[at] ^ 1, chance.randrange(256)])
        path.write_bytes(data)
        try:
            false_statistics(path)
            pq.read_table(path)  # what the other process read, this one can
            read += 1
        except SourceError:
            refused += 1
    assert min(read, refused) > 20, (read, refused)


@pytest.mark.parametrize("how", [{}, {"row_group_size": 2}, {"use_dictionary": False}])
def test_the_statistics_of_a_writer_hold(tmp_path: Path, how: dict[str, Any]) -> None:
    assert list(false_statistics(written(tmp_path / "rows.parquet", **how))) == []
    rng = np.random.default_rng(0)
    for kind in (np.int32, np.int64, np.float32, np.float64, np.uint32):
        numbers = (rng.standard_normal(1_000) * 1e5).astype(kind)
        path = written(tmp_path / "numbers.parquet", {"a": numbers}, **how)
        assert list(false_statistics(path)) == []


def test_statistics_that_hide_rows_are_told(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    ends = struct.pack("<d", -1.5), struct.pack("<d", -0.5)
    hidden = {"text": (b"zzzz", b"nnnn"), "share": ends}
    for name, (true, false) in hidden.items():
        written(path, {name: COLUMNS[name]})
        in_footer(path, swapped(true, false))
        assert list(false_statistics(path)) == [
            f"{name}: the statistics leave out values that are there"
        ]
    # It is no idle lie: who looks for the value finds nothing.
    assert pq.read_table(path).num_rows == 4
    assert duckdb.execute(f"FROM '{path}' WHERE share < -1").fetchall() == []

    written(path, {"text": [None, "a"]})
    in_footer(path, swapped(b"\x36\x02", b"\x36\x00"))
    (told,) = false_statistics(path)
    assert told == "text: the statistics count 0 nulls of 1"
    written(path, write_page_index=True)
    assert all("an index or a Bloom filter" in one for one in false_statistics(path))
