"""Texts that repeat each other within Parquet files: their lengths are read, and not believed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.common import files
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.isolation import parquet_file
from routeyard.pipelines.common.untrusted import bounded, parquet_rows
from tests.io.test_parquet import plain, varint

ENCODINGS = ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY")


def text(chance: random.Random) -> str:
    """A text that mostly begins as others do."""
    return "step 1: " * chance.randint(0, 6) + "".join(
        chance.choices("abcé", k=chance.choice([0, 3, 90]))
    )


def lists(count: int, seed: int = 0) -> list[list[str | None] | None]:
    chance = random.Random(seed)
    return [
        None
        if chance.random() < 0.1
        else [
            None if chance.random() < 0.1 else text(chance) for _ in range(chance.choice([0, 1, 5]))
        ]
        for _ in range(count)
    ]


def written(path: Path, column: Any, encoding: str = "DELTA_BYTE_ARRAY", **how: Any) -> Path:
    table = pa.table({"a": column})
    name = "a.list.element" if pa.types.is_list(table["a"].type) else "a"
    how = plain(column_encoding={name: encoding}, store_schema=False, write_statistics=False) | how
    pq.write_table(table, path, **how)
    return path


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip", "brotli", "lz4"])
def test_lengths_are_those_of_the_texts(tmp_path: Path, version: str, codec: str) -> None:
    how = {"compression": codec, "data_page_version": version}
    nested = lists(900)
    flat = [one for some in nested for one in some or [None]]
    nothing: Any = pa.array([None] * 500, pa.string())
    pieces = {"data_page_size": 2_000, "row_group_size": 300}
    for column in (nested, flat, nothing, pa.array([[]] * 9, pa.list_(pa.string())), ["a"], []):
        some = pa.array(column, None if len(column) else pa.string())
        texts = some.flatten() if pa.types.is_list(some.type) else some
        whole = sum(len(one.encode()) for one in texts.to_pylist() if one)
        for encoding in ENCODINGS:
            path = written(tmp_path / "rows.parquet", some, encoding, **how, **pieces)
            beside = 64 + 16 * (len(some) + len(texts))  # positions, and which are null
            assert whole <= parquet_file.size(str(path), 1 << 30) <= whole + beside
            assert [row["a"] for row in files.rows(bounded(path, 1))] == some.to_pylist()


def test_lists_that_are_honest_are_read(tmp_path: Path) -> None:
    # Above 190 kB they were taken for bombs.
    chance = random.Random(0)
    column = [
        [chance.randbytes(chance.randint(8, 40)).hex() for _ in range(4)] for _ in range(5_000)
    ]
    path = written(tmp_path / "rows.parquet", column)
    assert path.stat().st_size > 300_000
    assert [row["a"] for row in files.rows(path)] == column


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_more_lengths_than_values_are_refused(tmp_path: Path, encoding: str) -> None:
    # A reader made room for as many as the page said: 700 bytes took 4 GB.
    path = written(tmp_path / "rows.parquet", ["x" * 90, "y" * 90], encoding, compression="none")
    data = path.read_bytes()
    begin = data.index(b"\x80\x01\x04\x02")  # blocks of 128 in 4 parts, of 2 lengths
    wrong = b"\x80\x80\x04\x01\x80\x80\x80\x80\x02\0\0\0"  # blocks of 65,536, of 2**29
    path.write_bytes(data[:begin] + wrong * 2 + data[begin + 2 * len(wrong) :])
    with pytest.raises(SourceError, match=r"cannot be read|unfolds"):
        bounded(path)


@pytest.mark.parametrize("size", [9, 400, 8_000])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip"])
def test_a_page_that_lies_about_its_size_is_refused(tmp_path: Path, size: int, codec: str) -> None:
    path = written(tmp_path / "rows.parquet", ["x" * 500, "y" * 500], compression=codec)
    data = path.read_bytes()
    # Its header begins with its type, and then says how many bytes it unfolds to.
    where = pq.read_metadata(path).row_group(0).column(0).data_page_offset + 3
    assert data[where - 3 : where] == b"\x15\0\x15"
    lied = b"\x92\x00" if size == 9 else varint(size)
    assert len(lied) == 2
    path.write_bytes(data[:where] + lied + data[where + 2 :])
    if codec == "none":
        bounded(path)  # what is there counts
    else:
        with pytest.raises(SourceError):
            list(files.rows(path))


def test_whatever_a_page_holds_is_read_or_an_error_with_a_name(tmp_path: Path) -> None:
    chance = random.Random(0)
    path = written(tmp_path / "rows.parquet", lists(60), compression="none")
    whole = path.read_bytes()
    start = pq.read_metadata(path).row_group(0).column(0).data_page_offset
    read = refused = 0
    for _ in range(200):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 1, 3])):
            data[start + chance.randrange(260)] = chance.choice(
                [0, 255, 128, chance.randrange(256)]
            )
        path.write_bytes(data)
        try:
            bounded(path)
            pq.read_table(path)  # what the other process read, this one can
            read += 1
        except SourceError:
            refused += 1
    assert min(read, refused) > 10, (read, refused)


def test_coded_texts_are_read_as_plain_ones(tmp_path: Path) -> None:
    plain = ["a", None, "", "b", "a"]
    table = pa.table(
        {
            "text": plain,
            "coded": pa.array(plain).dictionary_encode(),
            "large": pa.array(plain, pa.large_string()).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    rows = list(parquet_rows(tmp_path / "t.parquet"))
    assert rows == [{"text": text, "coded": text, "large": text} for text in plain]
