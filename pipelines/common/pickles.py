"""Pickles of frames and arrays as plain values: opcodes are parsed, nothing they ask for is made.

`_Machine` turns the file into inert values, `Plain` makes lists, numbers, arrays from checked
buffers and the columns of data frames of them. `read` does all of it in the limited process.
"""

from __future__ import annotations

import math
import mmap
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeyard.pipelines.common.errors import SourceError, Unsafe
from routeyard.pipelines.common.untrusted import MAX_RATIO, physical_memory, reading

if TYPE_CHECKING:
    import numpy as np

# The pickle machine: opcodes → inert values. A name stays a name; nothing is imported or called.
#
# It is the standard library's own in Python. What would look up a name, call it or set a state
# writes down instead what a real unpickler would have done, as `Made`.

#: More opcodes than any published file has; each can cost some hundred bytes of memory.
MAX_OPCODES = 60_000_000


class Refused(Exception):
    """The pickle asks for something that data do not need."""


@dataclass(frozen=True, slots=True)
class Name:
    """`module.name`, never looked up."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"[:200]


@dataclass(slots=True, eq=False)
class Made:
    """What a call of `name` would have made, had it been called."""

    name: Name
    arguments: tuple[Any, ...]
    state: Any = None


class _Acts(dict[int, Callable[[Any], None]]):
    """What each opcode does; of more than `MAX_OPCODES` in a file none does anything."""

    left = MAX_OPCODES

    def __getitem__(self, code: int) -> Callable[[Any], None]:
        self.left -= 1
        if self.left < 0:
            raise ValueError(f"more than {MAX_OPCODES:,} opcodes")
        return super().__getitem__(code)


class _Machine(pickle._Unpickler):
    """Raises `Refused` for an opcode that reaches outside the file, anything for a damaged one."""

    stack: list[Any]
    append: Callable[[Any], None]
    read: Callable[[int], bytes]
    pop_mark: Callable[[], list[Any]]

    def __init__(self, stream: Any) -> None:
        super().__init__(stream, encoding="latin1")
        own = {code: getattr(type(self), act.__name__) for code, act in self.dispatch.items()}
        self.dispatch = _Acts(own)  # type: ignore[misc]  # counted for each file

    def find_class(self, module: str, name: str) -> Any:
        return Name(module, name)

    def persistent_load(self, pid: Any = None) -> Any:
        raise Refused("the pickle refers to things outside itself")

    get_extension = load_next_buffer = persistent_load

    def _instantiate(self, name: Any, arguments: Any) -> None:
        if not isinstance(name, Name) or not isinstance(arguments, (tuple, list)):
            raise Refused("the pickle calls something that is not a name")
        self.append(Made(name, tuple(arguments)))

    def load_reduce(self) -> None:
        arguments, name = self.stack.pop(), self.stack.pop()
        self._instantiate(name, arguments)

    load_newobj = load_reduce

    def load_newobj_ex(self) -> None:
        self.stack.pop()  # arguments by name: none of the values that we know has any
        self.load_reduce()

    def load_build(self) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if not isinstance(target, Made) or target.state is not None:
            raise Refused("the pickle sets the state of something that has none")
        target.state = state

    def load_bytearray8(self) -> None:
        # A read is cut at the file's end: a length that promises exabytes allocates nothing.
        self.append(self.read(int.from_bytes(self.read(8), "little")))

    def load_append(self) -> None:
        self._extend([self.stack.pop()])

    def load_appends(self) -> None:
        self._extend(self.pop_mark())

    def _extend(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise Refused(f"the pickle appends to a {type(target).__name__}")
        target.extend(values)

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._set_items([key, value])

    def load_setitems(self) -> None:
        self._set_items(self.pop_mark())

    def load_dict(self) -> None:
        values = self.pop_mark()
        self.append({})
        self._set_items(values)

    def _set_items(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if isinstance(target, Made) and target.name.name == "OrderedDict":
            target.state = {} if target.state is None else target.state
            target = target.state
        if type(target) is not dict:
            raise Refused(f"the pickle sets items of a {type(target).__name__}")
        target.update(zip(map(_key, values[::2]), values[1::2], strict=True))

    def load_additems(self) -> None:
        values, target = self.pop_mark(), self.stack[-1]
        if type(target) is not set:
            raise Refused(f"the pickle adds to a {type(target).__name__}")
        target.update(map(_key, values))

    def load_frozenset(self) -> None:
        values = self.pop_mark()  # the stack from here on is another
        self.append(frozenset(map(_key, values)))


def _key(value: Any) -> Any:
    """A dictionary's key or a set's member: hashing anything deep could exhaust the C stack."""
    scalar = (str, int, float, bytes, bool, type(None))
    if isinstance(value, scalar):
        return value
    if isinstance(value, tuple) and all(isinstance(part, scalar) for part in value):
        return value
    raise Refused("the pickle has a key that is neither text nor a number")


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
#: Types of Arrow whose columns are read.
_TEXTS = ("string", "utf8", "large_string", "large_utf8")
#: Name of a dtype: a kind and its size. Records (V) may hide pointers and are refused.
_PLAIN_DTYPE = re.compile(r"([<>|=]?)([biufcSUO?mM])(\d{0,6})")
_UNITS = frozenset({"Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"})


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


# Data frames, series and columns of pandas, from the blocks that its pickles hold.


@dataclass(frozen=True, slots=True)
class Frame:
    """A data frame: name of a column → its values, one per row; missing is None or NaN."""

    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def rows(self) -> Iterator[dict[str, Any]]:
        """One dictionary per row."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))


def listed(to: Plain, value: Any) -> list[Any]:
    """The values of a column as Python objects.

    Raises:
        ValueError: it is no column, or a cell of it holds more than texts and numbers.
    """
    to.spend(len(value) if hasattr(value, "__len__") else 1)
    if not isinstance(value, (list, tuple)):
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        if not kind or value.ndim != 1:
            raise ValueError("a column that is no row of values")
        # Nanoseconds would come out as bare integers.
        return list((value.astype("M8[us]") if kind == "M" else value).tolist())
    cells = list(value)
    for cell in cells:
        if isinstance(cell, (list, tuple)) and not any(
            isinstance(part, (list, tuple, dict, Frame)) or hasattr(part, "dtype") for part in cell
        ):
            continue
        if cell is not None and not isinstance(cell, (bool, int, float, str, bytes, complex)):
            raise ValueError(f"a cell that holds a {type(cell).__name__}")
    return cells


def _frame(to: Plain, value: Made) -> Frame:
    state = value.state
    if not isinstance(state, dict):
        raise ValueError("a data frame without its state")
    manager = state.get("_mgr", state.get("_data"))
    if not isinstance(manager, Made) or not manager.name.name.endswith("BlockManager"):
        raise ValueError("a data frame without blocks")
    blocks, axes = _blocks(to, manager)
    if len(axes) != 2:
        raise ValueError("a data frame without two axes")
    names, length = [str(name) for name in axes[0]], len(axes[1])
    frame: dict[int, list[Any]] = {}
    for values, places in blocks:
        for place, column in zip(places, _rows_of(to, values, len(places)), strict=True):
            if not 0 <= place < len(names) or place in frame or len(column) != length:
                raise ValueError("the blocks of a data frame do not fit its axes")
            frame[place] = column
    if len(frame) != len(names) or len(set(names)) != len(names):
        raise ValueError("a data frame lacks columns, or names two of them alike")
    return Frame({name: frame[place] for place, name in enumerate(names)})


def _series(to: Plain, value: Made) -> list[Any]:
    state = value.state
    manager = state.get("_mgr", state.get("_data")) if isinstance(state, dict) else None
    if not isinstance(manager, Made):
        raise ValueError("a series without its values")
    blocks, axes = _blocks(to, manager)
    values = listed(to, blocks[0][0])
    if len(blocks) != 1 or len(values) != len(axes[0]):
        raise ValueError("the values of a series do not fit its index")
    return values


def _blocks(to: Plain, manager: Made) -> tuple[list[tuple[Any, list[int]]], list[list[Any]]]:
    """(values, places) of each block, and the labels of each axis."""
    state, arguments = manager.state, manager.arguments
    if isinstance(state, tuple) and len(state) >= 4 and isinstance(state[3], dict):
        # Before pandas 1.3: the state held everything.
        held = next(iter(state[3].values()))
        blocks = [(b["values"], b["mgr_locs"]) for b in held["blocks"]]
        axes = held["axes"]
    elif len(arguments) >= 2:
        argument = arguments[0] if isinstance(arguments[0], (list, tuple)) else [arguments[0]]
        blocks = [block.arguments[:2] for block in argument if _is_block(block)]
        axes = arguments[1]
        if len(blocks) != len(argument):
            raise ValueError("not a block")
    else:
        raise ValueError("a data frame without blocks")
    labels = [listed(to, to.of(axis)) for axis in axes]
    return [(to.of(values), _places(to, place)) for values, place in blocks], labels


def _is_block(value: Any) -> bool:
    return isinstance(value, Made) and value.name.name in ("_unpickle_block", "new_block")


def _places(to: Plain, value: Any) -> list[int]:
    if isinstance(value, Made) and value.name.name == "BlockPlacement":
        value = value.arguments[0]
    if isinstance(value, Made) and value.name.name == "slice":
        start, stop, step = (*value.arguments, None, None)[:3]
        places = range(*slice(start, stop, step).indices(1_000_000))
        return list(places)
    if isinstance(value, int):
        return [value]
    return [int(place) for place in listed(to, to.of(value))]


def _rows_of(to: Plain, values: Any, count: int) -> list[list[Any]]:
    """The columns of a block: a block is an array of (columns × rows), or one column."""
    if isinstance(values, list):
        columns = len(values) == count and all(isinstance(row, list) for row in values)
    else:
        columns = getattr(values, "ndim", 1) == 2
    return [listed(to, row) for row in (values if columns else [values])]


def _index(to: Plain, value: Made) -> list[Any]:
    """`_new_Index(class, {data, name})`, or a range of {start, stop, step}."""
    if len(value.arguments) != 2 or not isinstance(value.arguments[1], dict):
        raise ValueError("an index without its data")
    parts = value.arguments[1]
    if "data" in parts:
        return listed(to, to.of(parts["data"]))
    if not all(isinstance(parts.get(key), int) for key in ("start", "stop", "step")):
        raise Refused("the pickle holds an index of several levels, or of another kind")
    numbers = range(parts["start"], parts["stop"], parts["step"])
    to.spend(len(numbers))
    return list(numbers)


def _backed(to: Plain, value: Made) -> Any:
    """`StringArray`, `Categorical`, `DatetimeArray`…: an array and what it means."""
    state = value.state
    if isinstance(state, tuple):
        parts = [part for part in state if _is_array(part)]
        kinds = [part for part in state if isinstance(part, Made) and not _is_array(part)]
        values = parts[0] if parts else None
        kind = kinds[0] if kinds else None
    elif isinstance(state, dict):
        values = state.get("_ndarray", state.get("_codes", state.get("_data")))
        kind = state.get("_dtype")
    else:
        values = kind = None
    if values is None:
        raise ValueError("a column without its values")
    if isinstance(kind, Made) and kind.name.name == "CategoricalDtype":
        categories = listed(to, to.of(_categories(kind)))
        codes = listed(to, to.of(values))
        if not all(isinstance(code, int) and -1 <= code < len(categories) for code in codes):
            raise ValueError("a category that does not exist")
        return [None if code < 0 else categories[code] for code in codes]
    return to.of(values)


def _is_array(value: Any) -> bool:
    return isinstance(value, Made) and value.name.name in ("_reconstruct", "_frombuffer")


def _categories(kind: Made) -> Any:
    if isinstance(kind.state, dict):
        return kind.state.get("categories")
    return kind.arguments[0] if kind.arguments else None


def _masked(to: Plain, value: Made) -> list[Any]:
    """`IntegerArray`, `FloatingArray`, `BooleanArray`: values and where they are missing."""
    state = value.state if isinstance(value.state, dict) else {}
    data, mask = listed(to, to.of(state.get("_data"))), listed(to, to.of(state.get("_mask")))
    if len(data) != len(mask):
        raise ValueError("a column whose mask has another length")
    return [None if missing else item for item, missing in zip(data, mask, strict=True)]


def _arrow(to: Plain, value: Made) -> list[Any]:
    state = value.state if isinstance(value.state, dict) else {}
    return _strings(to, state.get("_pa_array", state.get("_data")))


# Arrow's columns of text: Arrow itself checks every buffer, offset and text.


def _strings(to: Plain, value: Any) -> list[str | None]:
    """The texts of a pickled Arrow array or chunked array; null is None.

    Raises:
        Refused: it is no column of text.
        ValueError: an offset points outside its buffer.
    """
    import pyarrow as pa

    if not isinstance(value, Made):
        raise Refused("the pickle holds an Arrow column without data")
    if value.name.name == "chunked_array":
        chunks = value.arguments[0] if value.arguments else []
        return [text for chunk in chunks for text in _strings(to, chunk)]
    if value.name.name != "_restore_array" or len(value.arguments) != 1:
        raise Refused(f"the pickle asks for {value.name}, which data do not need")
    kind, length, _, offset, buffers, *_ = value.arguments[0]
    if not isinstance(kind, Made) or kind.name.name not in ("type_for_alias", *_TEXTS):
        raise Refused("the pickle holds an Arrow column that is no text")
    alias = kind.arguments[0] if kind.arguments else kind.name.name
    if alias not in _TEXTS or not isinstance(buffers, list) or len(buffers) != 3:
        raise Refused(f"the pickle holds an Arrow column of {str(alias)[:40]}, not of text")
    if type(length) is not int or length < 0:
        raise ValueError("an Arrow column without a valid length")
    to.spend(length)
    held = [_buffer(to, part) for part in buffers]
    try:
        column = pa.Array.from_buffers(pa.type_for_alias(alias), length, held, offset=offset)
        column.validate(full=True)
    except (TypeError, OverflowError, pa.ArrowInvalid) as error:
        raise ValueError(f"an Arrow column whose parts do not fit together: {error}") from error
    texts: list[str | None] = column.to_pylist()
    return texts


def _buffer(to: Plain, value: Any) -> Any:
    import pyarrow as pa

    if value is None:
        return None
    if not isinstance(value, Made) or value.name.name != "py_buffer" or not value.arguments:
        raise Refused("the pickle holds an Arrow column without buffers")
    return pa.py_buffer(to.of(value.arguments[0]))


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
    "DataFrame": _frame,
    "Series": _series,
    "_new_Index": _index,
    "__pyx_unpickle_NDArrayBacked": _backed,
    "Categorical": _backed,
    "StringArray": _backed,
    "NumpyExtensionArray": _backed,
    "PandasArray": _backed,
    "IntegerArray": _masked,
    "FloatingArray": _masked,
    "BooleanArray": _masked,
    "ArrowStringArray": _arrow,
    "ArrowExtensionArray": _arrow,
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
            return Plain().of(_Machine(view).load())
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


#: What JSON lacks is an object of one key, its kind: type, its value as JSON, and back.
_KINDS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "complex": (complex, lambda v: [v.real, v.imag], lambda parts: complex(*parts)),
    "datetime": (datetime, datetime.isoformat, datetime.fromisoformat),
    "timedelta": (
        timedelta, lambda v: [v.days, v.seconds, v.microseconds], lambda parts: timedelta(*parts),
    ),
}  # fmt: skip


def _coded(value: Any, arrays: list[Any]) -> Any:
    """A value as JSON: a list is `[…]`, what JSON lacks is an object of one key, its kind."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_coded(item, arrays) for item in value]
    if isinstance(value, tuple):
        return {"tuple": _coded([*value], arrays)}
    if isinstance(value, dict):
        return {"dict": _coded([[*pair] for pair in value.items()], arrays)}
    if isinstance(value, Frame):
        return {"frame": _coded(value.columns, arrays)}
    for kind, (of, pack, _) in _KINDS.items():
        if isinstance(value, of):
            return {kind: pack(value)}
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
    if kind == "array":
        return _array(arrays[held[0]], held[1], held[2])
    if kind in _KINDS:
        return _KINDS[kind][2](held)
    parts = _decoded(held, arrays)
    return {"tuple": tuple, "dict": dict, "frame": Frame}[kind](parts)


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
