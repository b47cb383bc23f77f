"""Files that strangers wrote: what is checked before they are read here.

A Parquet file can end the process that reads it, or come to gigabytes. So it is first read in a
process with limits; only then, where it is needed as a table, here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.isolation import (
    FunctionFailed,
    LimitExceeded,
    Limits,
    ProcessEnded,
    Worker,
)
from routeyard.schemas.text import literal

#: A file may come to so many times its size: text becomes a tenth, and a bomb a thousandth.
MAX_RATIO = 200
#: A table of a release may: of labels most columns say the same in each row, and millions of them
#: reach some hundreds.
RELEASED = 5_000
#: So many bytes are read of any Parquet file.
ANYWAY = 500_000_000
#: Memory of the process that reads a file, beside twice the file's size; and seconds for a MiB.
_MEMORY, _S_PER_MIB = 2 << 30, 1.0


def regular(path: Path) -> None:
    """Stop at a pipe or a device: reading one could wait for ever.

    Raises:
        SourceError: it is no regular file.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise SourceError(
            f"{path.name} is no regular file",
            where=str(path),
            next_step="put a file there, or take it out of the folder",
        )


def short_text(path: Path, most: int) -> str:
    """The text of a file that somebody else may have written: a regular one, `most` bytes long.

    Raises:
        SourceError: it is no regular file, or is longer.
        OSError, UnicodeDecodeError: it cannot be read, or is no text.
    """
    regular(path)
    with path.open("rb") as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise SourceError(
            f"{path.name} is longer than such a file can be ({most:,} bytes)",
            where=str(path),
            next_step="name another file",
        )
    return data.decode("utf-8-sig")


def too_large(path: Path, why: str) -> SourceError:
    """The error of a file that unfolds to more than a person would have written."""
    return SourceError(
        f"{path.name} is refused: it {why}",
        where=str(path),
        next_step="if you trust it, unpack it or split it, and read that",
    )


def damaged(path: Path, error: Exception | str) -> SourceError:
    """The error of a file that is not what its name says."""
    return SourceError(
        f"{path.name} cannot be read: {error}",
        where=str(path),
        next_step="fetch or write the file again; nothing was imported",
    )


def bounded(path: Path, ratio: int = MAX_RATIO) -> Path:
    """The path of a Parquet file that was read whole in the limited process.

    Raises:
        SourceError: it is no Parquet file, is damaged, or comes to more than `ratio` times its
            size and more than `ANYWAY` bytes.
    """
    from routeyard.pipelines.common.isolation.parquet_file import size

    with reading(path, ratio) as (worker, most, limits):
        worker.call(size, str(path.absolute()), most, limits=limits)
    return path


def false_statistics(path: Path, ratio: int = RELEASED) -> list[str]:
    """What a Parquet file claims wrongly of its values, one sentence for each column.

    Raises:
        SourceError: as `bounded` does.
    """
    from routeyard.pipelines.common.isolation.parquet_file import false_statistics as found_false

    with reading(path, ratio) as (worker, most, limits):
        full = str(path.absolute())
        results: list[str] = worker.call(found_false, full, literal(full), most, limits=limits)
    return results


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Rows of a stranger's Parquet file, read in the limited process.

    Raises:
        SourceError: as `bounded` does.
    """
    from routeyard.pipelines.common.isolation.parquet_file import batches

    with (
        reading(path, MAX_RATIO) as (worker, most, limits),
        closing(worker.stream(batches, str(path.absolute()), most, limits=limits)) as stream,
    ):
        for batch in stream:
            names = batch.schema.names
            for values in zip(*map(_values, batch.columns), strict=True):
                yield dict(zip(names, values, strict=True))


def _values(column: Any) -> list[Any]:
    """The values of an array; texts that are coded are decoded at once, not one by one."""
    from pyarrow.types import is_dictionary, is_large_string, is_string

    if is_dictionary(column.type):
        kind = column.type.value_type
        column = column.dictionary_decode() if is_string(kind) or is_large_string(kind) else column
    values: list[Any] = column.to_pylist()
    return values


def physical_memory() -> int:
    """Bytes of memory of this machine: the limit of work whose need is not known before."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


#: Without a lock: the garbage collector may close a reader while this thread takes a worker.
_idle: list[Worker] = []


@contextmanager
def reading(path: Path, ratio: int) -> Iterator[tuple[Worker, int, Limits]]:
    """A free process that reads files, the bytes that this file may come to, and limits for it.

    Several files may be read at a time, each by its own process, which then serves the next file.

    Raises:
        SourceError: it is no regular file, what the process raised, or that it ended or passed a
            limit.
    """
    from routeyard.pipelines.common.isolation.parquet_file import prepare

    regular(path)
    size = path.stat().st_size
    most = max(ANYWAY, ratio * size)
    time_s = 60 + _S_PER_MIB * max(size, ANYWAY) / (1 << 20)
    limits = Limits(_MEMORY + 2 * size, 10 * time_s, time_s)
    try:
        worker = _idle.pop()
    except IndexError:
        worker = Worker(limits, prepare)
    try:
        yield worker, most, limits
    except LimitExceeded as error:
        says = f"unfolds to more than {most:,} bytes"
        raise too_large(
            path, says if error.limit == "memory" else "takes too long to read"
        ) from error
    except ProcessEnded as error:
        raise damaged(path, error.what) from error
    except FunctionFailed as error:
        kind, _, says = str(error).partition(": ")
        if kind == "TooLarge":
            raise too_large(path, f"unfolds to more than {most:,} bytes") from error
        raise damaged(path, says) from error
    finally:
        _idle.append(worker)
