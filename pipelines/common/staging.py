"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import uuid
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.pipelines.common.arrays import Ints
from routeyard.pipelines.common.errors import DiskFull
from routeyard.pipelines.common.machine import pid_space, runs
from routeyard.schemas import StoredTable

if TYPE_CHECKING:
    import pyarrow as pa

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def staging(target: Path) -> Iterator[Path]:
    """A new folder beside `target`, removed at the end unless `place` moved it there.

    Its name says which process of which pid namespace makes it; what killed processes of
    this namespace left there is removed first, while others may be at work.

    Raises:
        DiskFull: there was no room.
    """
    folder = temporary_path(target)
    try:
        with _room_for(target):
            folder.mkdir(mode=0o700)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def place(folder: Path, target: Path) -> None:
    """Flush a staging folder to disk and rename it to `target`.

    A power cut leaves either nothing or all of it.

    Raises:
        FileExistsError: someone else made `target` in the meantime.
    """
    folder.chmod(0o755)
    for path in sorted(folder.rglob("*")):
        _flush(path)
    _flush(folder)
    taken = FileExistsError(errno.EEXIST, "another build made it first", str(target))
    if os.path.lexists(target):  # a link that leads nowhere is there as well
        raise taken
    try:
        folder.rename(target)
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:  # it was made since we looked
            raise taken from error
        raise
    _flush(target.parent)


@contextmanager
def alone(target: Path, wait: Callable[[], None]) -> Iterator[None]:
    """Only one process or thread at a time makes `target`; the system ends a dead one's turn.

    Args:
        wait: Called once where another has its turn.

    A file system without locks lets all in; `place` then keeps what was made first.
    """
    lock = _lock_of(target)
    with _room_for(target):
        handle = _locked(lock, wait)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)  # first: whoever waits for this file looks for its name again
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)  # also that of child processes, which share it
        os.close(handle)


def forget_lock(target: Path) -> None:
    """Remove the lock of `target` that a process left which was killed while it had its turn."""
    lock = _lock_of(target)
    with suppress(OSError):  # no lock, somebody has a turn, or the folder cannot be written
        handle = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), os.stat(lock)):
                lock.unlink()
        finally:
            os.close(handle)


def _lock_of(target: Path) -> Path:
    return target.parent / f".{target.name}.lock"


def _locked(lock: Path, wait: Callable[[], None]) -> int:
    """A descriptor that holds the lock of the file of that name."""
    waited = False
    while True:
        handle = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not waited:
                wait()
                waited = True
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
            except BaseException:
                os.close(handle)
                raise
        except OSError:
            return handle
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(lock)):
                return handle
        os.close(handle)


def is_full(error: BaseException) -> bool:
    """Whether an error of the system, Arrow or DuckDB says that the disk is full."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    words = ("no space left", "disk quota exceeded", "file too large")
    return any(word in str(error).lower() for word in words)


def write_json(path: Path, content: Any) -> None:
    """Indented JSON with sorted keys, replaced in one step; NaN is refused, since it is no JSON."""
    text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def write_text(path: Path, text: str) -> None:
    """A text in UTF-8, replaced in one step."""
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def write_parquet(path: Path, table: pa.Table) -> None:
    """A table as Parquet with zstd, replaced in one step."""
    with replacing(path) as unfinished:
        pq.write_table(table, unfinished, compression="zstd")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write beside `path`, put in its place in one step; nothing is left of a failure.

    What killed processes left half-written there is removed first.

    Raises:
        DiskFull: there was no room.
    """
    unfinished = temporary_path(path)
    with _room_for(path):
        try:
            yield unfinished
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove what killed processes left half-written in a folder."""
    for left in folder.glob(f".*.*.{_space()}.*"):
        pid = left.name.rpartition(".")[2]
        if pid.isdigit() and not runs(int(pid)):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)
            else:
                with suppress(OSError):
                    left.unlink()


def temporary_path(target: Path) -> Path:
    """A name that says which process of which pid namespace makes it."""
    name = f".{target.name}.{uuid.uuid4().hex[:8]}.{_space()}.{os.getpid()}"
    return target.parent / name


@contextmanager
def _room_for(target: Path) -> Iterator[None]:
    """Sweep the folder of what is written; a full disk is an error of ours."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target.parent)
        yield
    except Exception as error:
        if not is_full(error):
            raise
        why = f" ({error.strerror})" if isinstance(error, OSError) else ""
        raise DiskFull(
            f"there is no room on the disk for {target.name}{why}",
            where=str(target),
            next_step="free some space and run the same command; "
            "finished stages are kept and nothing half-written is left",
        ) from error


@cache
def _space() -> str:
    """Where this process's id means this process, as part of a file name."""
    return hashlib.sha256(pid_space().encode()).hexdigest()[:8]


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Long tables in parts: from a file a row group at a time, ids as positions, no text kept.

#: Rows of a table in memory that are looked at together.
_ROWS = 1 << 17


def column_batches(
    table: pa.Table | StoredTable, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Some columns of a table in its order; no more than a row group of a file is in memory."""
    if isinstance(table, pa.Table):
        yield from table.select(list(columns)).to_batches(max_chunksize=_ROWS)
        return
    repeated = _in_dictionary(pq.read_metadata(table.path)) & set(columns)
    with pq.ParquetFile(table.path, read_dictionary=sorted(repeated)) as file:
        for group in range(file.num_row_groups):
            yield from file.read_row_group(group, columns=list(columns)).to_batches()


def _in_dictionary(about: pq.FileMetaData) -> set[str]:
    """Columns whose texts the file itself holds once each; others cannot be read that way."""
    if not about.num_row_groups:
        return set()
    group = about.row_group(0)
    return {
        chunk.path_in_schema
        for chunk in map(group.column, range(group.num_columns))
        if chunk.physical_type == "BYTE_ARRAY" and "RLE_DICTIONARY" in chunk.encodings
    }


def positions_within(values: pa.Array, known: pa.Array) -> Ints:
    """`positions` in sorted ids, of which those between the values are looked at."""
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    ends = pc.min_max(values.dictionary).as_py()
    if ends["min"] is None:
        return np.full(len(values), -1, dtype=np.int64)
    every = range(len(known))
    first = bisect_left(every, ends["min"], key=lambda i: known[i].as_py())
    after = bisect_right(every, ends["max"], key=lambda i: known[i].as_py())
    result = positions(values, known.slice(first, after - first))
    return np.where(result >= 0, result + first, result)


def positions(values: pa.Array, known: pa.Array) -> Ints:
    """Position of each value in `known`, −1 where it is not listed."""
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    names = values.dictionary.cast(known.type)
    value: Any = pc.fill_null(pc.index_in(names, value_set=known), -1).to_numpy()
    value = np.append(value, -1)  # a null
    at: Ints = pc.fill_null(values.indices, -1).to_numpy()
    return np.asarray(value[at], dtype=np.int64)
