"""A pickle file → plain values, or an error that names the file."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

from routeyard.pipelines.errors import SourceError, Unsafe
from routeyard.pipelines.pickles.machine import Refused, run
from routeyard.pipelines.pickles.plain import plain

MAX_BYTES = 8_000_000_000


def load(path: Path) -> Any:
    """What a pickle of data frames, arrays, dictionaries, lists and numbers holds.

    No name in the file is looked up and no pickle, pandas or pyarrow code sees its
    bytes: the opcodes are parsed into inert values, and frames and arrays are put
    together from buffers whose lengths were checked.

    Returns:
        Dictionaries, lists, tuples, numbers, text and bytes as they are; NumPy arrays of
        numbers as read-only arrays; arrays of objects as lists; a series or an index as a
        list; a data frame as `Frame`.

    Raises:
        Unsafe: it asks for anything that data do not need.
        SourceError: it is damaged, or too large.
    """
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise SourceError("the pickle is too large", where=str(path))
    if not size:
        raise _damaged(path, "it is empty")
    try:
        # Mapped, because a read from a map is cut at its end: a length in the file
        # that promises exabytes allocates nothing.
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as view:
            return plain(run(view))
    except Refused as refused:
        raise Unsafe(
            str(refused),
            where=str(path),
            next_step="do not open this file with anything else: it may run code; "
            "get the data as Parquet, CSV or JSON",
        ) from refused
    except OSError:
        raise
    except Exception as error:  # a damaged pickle raises anything
        raise _damaged(path, f"{type(error).__name__}: {str(error)[:200]}") from error


def _damaged(path: Path, says: str) -> SourceError:
    return SourceError(
        f"the pickle cannot be read: {says}",
        where=str(path),
        next_step="fetch the file again, or write it anew with a newer pandas",
    )
