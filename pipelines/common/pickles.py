"""Pickles of frames and arrays as plain values: opcodes are parsed, nothing they ask for is made.

`pickle_values.py` turns the file into inert values and makes the columns of a data frame;
`Plain` makes lists, numbers and arrays of them from checked buffers.
`read` does all of it in the limited process.
"""

from __future__ import annotations

import datetime
import math
import mmap
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeyard.pipelines.common import pickle_values as frames
from routeyard.pipelines.common.errors import SourceError, Unsafe
from routeyard.pipelines.common.pickle_values import Frame, Made, Name, Refused, run
from routeyard.pipelines.common.untrusted import MAX_RATIO, physical_memory, reading

if TYPE_CHECKING:
    import numpy as np

# Inert values → plain ones: numbers, text, lists, and arrays from checked buffers.

#: How deep a value may be nested, and how many values it may hold once shared ones
#: are counted at every place where they occur.
MAX_DEPTH, MAX_VALUES = 40, 500_000_000
#: Cells of all columns together: many columns may name the same bytes.
MAX_CELLS = 200_000_000

_TOP = frozenset(
    {"builtins", "__builtin__", "collections", "numpy", "pandas", "pyarrow", "_codecs"}
    | {"copyreg", "copy_reg"}
)
#: Name of a dtype: a kind and its size. Records (V) may hide pointers and are refused.
_PLAIN_DTYPE = re.compile(r"([<>|=]?)([biufcSUO?mM])(\d{0,6})")
_UNITS = frozenset({"Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"})


def plain(value: Any) -> Any:
    """A value without `Made` or `Name` in it.

    Raises:
        Refused: it asks for something that data do not need.
        ValueError: its parts do not fit together, it is too deep or too large.
    """
    return Plain().of(value)


class Plain:
    """One conversion; a value that occurs in several places is converted once."""

    def __init__(self) -> None:
        self._done: dict[int, Any] = {}
        self._weights: dict[int, int] = {}
        self._open: set[int] = set()
        self._cells = 0

    def spend(self, cells: int) -> None:
        """Count cells that are about to be made as Python objects."""
        self._cells += cells
        if self._cells > MAX_CELLS:
            raise ValueError(f"its columns hold more than {MAX_CELLS:,} cells")

    def of(self, value: Any) -> Any:
        """The plain form of a value."""
        if value is None or isinstance(value, (bool, int, float, str, bytes)):
            return value
        if isinstance(value, bytearray):
            return bytes(value)
        if isinstance(value, Name):
            return _named(value)
        at = id(value)
        if at in self._done:
            return self._done[at]
        if at in self._open:
            raise ValueError("a value contains itself")
        if len(self._open) >= MAX_DEPTH:
            raise ValueError(f"nested more than {MAX_DEPTH} deep")
        self._open.add(at)
        weight, made = self._made(value)
        if weight > MAX_VALUES:
            raise ValueError(f"it holds more than {MAX_VALUES:,} values")
        self._open.discard(at)
        self._done[at], self._weights[at] = made, weight
        return made

    def _made(self, value: Any) -> tuple[int, Any]:
        if isinstance(value, dict):
            parts = list(value.values())
            made: Any = {key: self.of(part) for key, part in value.items()}
        elif isinstance(value, (list, tuple)):
            parts = list(value)
            made = type(value)([self.of(part) for part in value])
        elif isinstance(value, (set, frozenset)):
            parts, made = [], value
        else:
            parts = [*value.arguments, value.state]
            made = self._call(value)
        return 1 + sum(self._weights.get(id(part), 1) for part in parts), made

    def _call(self, value: Made) -> Any:
        name = value.name
        if name.module in ("copyreg", "copy_reg") and name.name == "_reconstructor":
            inner = value.arguments[0]
            if not isinstance(inner, Name):
                raise Refused("the pickle rebuilds something that is not a name")
            value = Made(inner, (), value.state)
            name = inner
        make = _KNOWN.get(name.name) if name.module.partition(".")[0] in _TOP else None
        if make is None:
            raise Refused(f"the pickle asks for {name}, which data do not need")
        return make(self, value)


def _named(name: Name) -> None:
    """A bare name is a value only where it means `missing`."""
    if (name.module.partition(".")[0], name.name) in (("pandas", "NA"), ("pandas", "NaT")):
        return
    raise Refused(f"the pickle asks for {name}, which data do not need")


def dtype(to: Plain, value: Any) -> np.dtype[Any]:
    """A NumPy dtype from what the pickle says of it: plain kinds only, no records.

    Raises:
        Refused: it has fields, a base, or a kind that is not data.
    """
    import numpy as np

    if not isinstance(value, Made) or value.name.name != "dtype" or not value.arguments:
        raise Refused("the pickle holds an array without a dtype")
    state = value.state if isinstance(value.state, tuple) else (3, "=", None, None, None)
    match = _PLAIN_DTYPE.fullmatch(str(_text(value.arguments[0])))
    if match is None or len(state) < 5 or any(part is not None for part in state[2:5]):
        raise Refused("the pickle holds an array of records, which may hide pointers")
    order = _text(state[1]) if _text(state[1]) in ("<", ">", "=", "|") else "="
    _, kind, size = match.groups()
    if kind in "mM":
        return np.dtype(f"{order}{kind}{_unit(to, state)}")
    return np.dtype(f"{order}{kind}{size}")


def _unit(to: Plain, state: tuple[Any, ...]) -> str:
    details = state[8] if len(state) > 8 and isinstance(state[8], tuple) else (None, ())
    unit = _text(to.of(details[1][0])) if len(details) == 2 and details[1] else ""
    if unit not in _UNITS or tuple(details[1][1:4]) not in ((1, 1, 1), (1, 1)):
        raise Refused("the pickle holds dates of an unknown unit")
    return f"8[{unit}]"


def _text(value: Any) -> Any:
    return value.decode("latin1") if isinstance(value, bytes) else value


def array(to: Plain, data: Any, kind: np.dtype[Any], shape: Any, *, fortran: bool) -> Any:
    """A read-only array over the bytes of the file; nested lists where it holds objects.

    Raises:
        ValueError: the bytes are more or fewer than the shape needs.
    """
    import numpy as np

    sides = (shape,) if isinstance(shape, int) else tuple(shape)
    if len(sides) > 8 or any(type(n) is not int or not 0 <= n <= 1 << 40 for n in sides):
        raise ValueError("an array without a valid shape")
    count = math.prod(sides)
    if not count and max(sides) > 10_000_000:
        raise ValueError("an empty array that claims millions of rows")
    if kind.hasobject:
        if not isinstance(data, (list, tuple)) or len(data) != count:
            raise ValueError("an array of objects holds another number of them than it says")
        to.spend(count)
        return _nested(iter(data), sides)  # in the order of rows, whatever the layout was
    if not isinstance(data, bytes) or not kind.itemsize or len(data) != count * kind.itemsize:
        raise ValueError("an array holds another number of bytes than it says")
    numbers = np.frombuffer(data, dtype=kind, count=count)
    return numbers.reshape(sides, order="F" if fortran else "C")


def _nested(values: Any, sides: tuple[int, ...]) -> Any:
    if not sides:
        return next(values)
    if len(sides) == 1:
        return list(islice(values, sides[0]))
    return [_nested(values, sides[1:]) for _ in range(sides[0])]


def _reconstruct(to: Plain, value: Made) -> Any:
    """`_reconstruct`, then the state (version, shape, dtype, order, data)."""
    state = value.state
    if not isinstance(state, tuple) or len(state) not in (4, 5):
        raise ValueError("an array without its state")
    shape, kind, fortran, data = state[-4:]
    return array(to, to.of(data), dtype(to, kind), to.of(shape), fortran=bool(fortran))


def _from_buffer(to: Plain, value: Made) -> Any:
    data, kind, shape, order = value.arguments
    return array(to, to.of(data), dtype(to, kind), to.of(shape), fortran=order == "F")


def _scalar(to: Plain, value: Made) -> Any:
    kind, data = dtype(to, value.arguments[0]), to.of(value.arguments[1])
    if kind.hasobject:
        raise Refused("the pickle holds a NumPy scalar of objects")
    return array(to, data, kind, (), fortran=False).item()


def _encode(to: Plain, value: Made) -> bytes:
    """How protocol 2 writes bytes."""
    text, codec = (*value.arguments, "latin1")[:2]
    if codec != "latin1" or not isinstance(text, str):
        raise Refused(f"the pickle asks for the codec {str(codec)[:40]!r}")
    return text.encode("latin1")


def _bytes(to: Plain, value: Made) -> bytes:
    held = to.of(value.arguments[0]) if value.arguments else b""
    if isinstance(held, str):
        return held.encode("latin1")
    if not isinstance(held, bytes):
        raise ValueError("bytes of something that is not bytes")
    return held


def _collected(kind: type) -> Callable[[Plain, Made], Any]:
    def make(to: Plain, value: Made) -> Any:
        held = to.of(value.arguments[0]) if value.arguments else []
        scalar = (str, int, float, bytes, type(None))
        if not isinstance(held, (list, tuple)) or not all(isinstance(v, scalar) for v in held):
            raise ValueError(f"a {kind.__name__} of something that is no list")
        return kind(held)

    return make


def _ordered(to: Plain, value: Made) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for pair in to.of(value.arguments[0]) if value.arguments else ():
        key, item = pair
        if not isinstance(key, (str, int, float)):
            raise Refused("the pickle has a key that is neither text nor a number")
        result[key] = item
    return result | (to.of(value.state) or {})


def _complex(to: Plain, value: Made) -> complex:
    real, imaginary = value.arguments
    return complex(float(real), float(imaginary))


_KNOWN: dict[str, Callable[[Plain, Made], Any]] = {
    "_reconstruct": _reconstruct,
    "_frombuffer": _from_buffer,
    "scalar": _scalar,
    "encode": _encode,
    "bytearray": _bytes,
    "bytes": _bytes,
    "set": _collected(set),
    "frozenset": _collected(frozenset),
    "OrderedDict": _ordered,
    "complex": _complex,
    **frames.KNOWN,
}


# A pickle file → plain values, or an error that names the file.

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


# A pickle file, read in the limited process; its values cross as JSON and Arrow.

#: Cells of a column that are handed over together.
_CELLS = 20_000
#: NumPy's numbers, dates and texts; never objects.
_ISOLATED_DTYPE = re.compile(r"[<>|=]?[biufcSUmM]\d+(\[\d*\w+\])?")


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
        return [_coded(item, arrays) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [_coded(item, arrays) for item in value]}
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
        return [_decoded(item, arrays) for item in value]
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

    if not _ISOLATED_DTYPE.fullmatch(dtype):
        raise SourceError(f"the pickle holds an array of {dtype[:40]}, not of numbers or texts")
    if not len(data):
        return np.empty(shape, dtype)
    made = np.frombuffer(data.buffers()[1], dtype, offset=data.offset)
    return made.reshape(shape)[()]


__all__ = ["Frame", "load", "read"]
