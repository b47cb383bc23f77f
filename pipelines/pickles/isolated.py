"""A pickle file, read in the limited process; its values cross as JSON and Arrow."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.io.untrusted import MAX_RATIO, physical_memory, reading
from routeyard.pipelines.pickles.frames import Frame
from routeyard.pipelines.pickles.load import load

#: Cells of a column that are handed over together.
_CELLS = 20_000
#: NumPy's numbers, dates and texts; never objects.
_DTYPE = re.compile(r"[<>|=]?[biufcSUmM]\d+(\[\d*\w+\])?")


def read(path: Path) -> Any:
    """What `load` returns of a file, found in the limited process.

    Raises:
        Unsafe: it asks for anything that data do not need.
        SourceError: it is damaged, or takes more time or memory than it may.
    """
    columns: dict[str, list[Any]] = {}
    arrays: list[Any] = []
    value: Any = None
    with reading(path, MAX_RATIO) as (worker, _, limits):
        limits = replace(limits, memory=physical_memory(), answer=1 << 34)
        full = str(path.absolute())
        with closing(worker.stream(pieces, full, limits=limits)) as stream:
            for piece in stream:
                if not isinstance(piece, dict):
                    arrays.append(piece.column(0))
                elif "column" in piece:
                    cells = [_decoded(cell, arrays) for cell in piece["cells"]]
                    columns.setdefault(piece["column"], []).extend(cells)
                else:
                    value = piece
    if value is None:
        raise SourceError("the pickle gave no value", where=str(path))
    return Frame(columns) if "frame" in value else _decoded(value["value"], arrays)


def pieces(path: str) -> Iterator[Any]:
    """What a pickle holds, for `read`: columns in parts, arrays as bytes, then the whole."""
    value = load(Path(path))
    if not isinstance(value, Frame):
        arrays: list[Any] = []
        coded = _coded(value, arrays)
        yield from map(_as_bytes, arrays)
        yield {"value": coded}
        return
    for name in list(value.columns):
        cells = value.columns.pop(name)  # what was handed over is held once
        for start in range(0, max(1, len(cells)), _CELLS):
            some = [_coded(cell, []) for cell in cells[start : start + _CELLS]]
            yield {"column": name, "cells": some}
    yield {"frame": True}


def _as_bytes(array: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    data = pa.py_buffer(np.ascontiguousarray(array))
    return pa.record_batch([pa.UInt8Array.from_buffers(pa.uint8(), data.size, [None, data])], ["a"])


def _coded(value: Any, arrays: list[Any]) -> Any:
    """A value as JSON: a list is `[…]`, what JSON lacks is an object of one key, its kind."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_coded(one, arrays) for one in value]
    if isinstance(value, tuple):
        return {"tuple": [_coded(one, arrays) for one in value]}
    if isinstance(value, dict):
        return {"dict": [[_coded(k, arrays), _coded(v, arrays)] for k, v in value.items()]}
    if isinstance(value, Frame):
        return {"frame": _coded(value.columns, arrays)}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, datetime.datetime):
        return {"datetime": value.isoformat()}
    if isinstance(value, datetime.timedelta):
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    if hasattr(value, "dtype"):
        arrays.append(value)
        return {"array": [len(arrays) - 1, value.dtype.str, list(value.shape)]}
    raise ValueError(f"a value that is a {type(value).__name__}")


def _decoded(value: Any, arrays: list[Any]) -> Any:
    if isinstance(value, list):
        return [_decoded(one, arrays) for one in value]
    if not isinstance(value, dict):
        return value
    ((kind, held),) = value.items()
    if kind == "dict":
        return {_decoded(k, arrays): _decoded(v, arrays) for k, v in held}
    if kind == "array":
        return _array(arrays[held[0]], held[1], held[2])
    made: dict[str, Callable[[], Any]] = {
        "tuple": lambda: tuple(_decoded(held, arrays)),
        "frame": lambda: Frame(_decoded(held, arrays)),
        "bytes": lambda: bytes.fromhex(held),
        "complex": lambda: complex(*held),
        "datetime": lambda: datetime.datetime.fromisoformat(held),
        "timedelta": lambda: datetime.timedelta(*held),
    }
    return made[kind]()


def _array(data: Any, dtype: str, shape: list[int]) -> Any:
    """An array over the bytes that came, which are not copied and cannot be written."""
    import numpy as np

    if not _DTYPE.fullmatch(dtype):
        raise SourceError(f"the pickle holds an array of {dtype[:40]}, not of numbers or texts")
    if not len(data):
        return np.empty(shape, dtype)
    made = np.frombuffer(data.buffers()[1], dtype, offset=data.offset)
    return made.reshape(shape)[()]
