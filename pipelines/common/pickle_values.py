"""Data frames, series and columns of pandas, from the blocks that its pickles hold."""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

# The pickle machine: opcodes → inert values. A name stays a name; nothing is imported or called.
#
# `pickletools` of the standard library reads the opcodes. This machine keeps the stack
# and the memo, and writes down what a real unpickler would have called, as `Made`.

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
    named: dict[str, Any] = field(default_factory=dict)


class _Mark:
    """Where a group of values on the stack begins."""


_MARK = _Mark()


def run(stream: Any) -> Any:
    """The value a pickle describes, with `Name` and `Made` where it asks for code.

    Raises:
        Refused: an opcode that reaches outside the file.
        ValueError: the file is no pickle, or damaged.
    """
    machine = _Machine()
    for number, (opcode, argument, _) in enumerate(pickletools.genops(stream)):
        if number > MAX_OPCODES:
            raise ValueError(f"more than {MAX_OPCODES:,} opcodes")
        if opcode.name in _PUSHED:
            machine.stack.append(argument)
        elif opcode.name == "STOP":
            return machine.pop()
        elif opcode.name not in _SILENT:
            act = _ACTS.get(opcode.name)
            if act is None:
                raise Refused(f"the pickle refers to things outside itself ({opcode.name})")
            act(machine, argument)
    raise ValueError("the pickle ends before its end")


class _Machine:
    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise ValueError("a value is missing before a mark")
        return value

    def top(self) -> Any:
        if self.stack[-1] is _MARK:
            raise ValueError("a value is missing before a mark")
        return self.stack[-1]

    def group(self) -> list[Any]:
        at = len(self.stack) - 1
        while at >= 0 and self.stack[at] is not _MARK:
            at -= 1
        if at < 0:
            raise ValueError("there is no mark")
        values = self.stack[at + 1 :]
        del self.stack[at:]
        return values


def _key(value: Any) -> Any:
    """A dictionary's key or a set's member: hashing anything deep could exhaust the C stack."""
    scalar = (str, int, float, bytes, bool, type(None))
    if isinstance(value, scalar):
        return value
    if isinstance(value, tuple) and all(isinstance(part, scalar) for part in value):
        return value
    raise Refused("the pickle has a key that is neither text nor a number")


def _drop_group(machine: _Machine, _: Any) -> None:
    machine.group()


def _tuple(count: int) -> Callable[[_Machine, Any], None]:
    def act(machine: _Machine, _: Any) -> None:
        values = [machine.pop() for _ in range(count)]
        machine.stack.append(tuple(reversed(values)))

    return act


def _extend(machine: _Machine, values: list[Any]) -> None:
    target = machine.top()
    if type(target) is not list:
        raise Refused(f"the pickle appends to a {type(target).__name__}")
    target.extend(values)


def _set_items(machine: _Machine, values: list[Any]) -> None:
    target = machine.top()
    if isinstance(target, Made) and target.name.name == "OrderedDict":
        if target.state is None:
            target.state = {}
        target = target.state
    if type(target) is not dict or len(values) % 2:
        raise Refused(f"the pickle sets items of a {type(target).__name__}")
    for key, value in zip(values[::2], values[1::2], strict=True):
        target[_key(key)] = value


def _add_items(machine: _Machine, _: Any) -> None:
    values = machine.group()
    target = machine.top()
    if type(target) is not set:
        raise Refused(f"the pickle adds to a {type(target).__name__}")
    target.update(_key(value) for value in values)


def _append(machine: _Machine, _: Any) -> None:
    value = machine.pop()
    _extend(machine, [value])


def _set_item(machine: _Machine, _: Any) -> None:
    value, key = machine.pop(), machine.pop()
    _set_items(machine, [key, value])


def _dict(machine: _Machine, _: Any) -> None:
    values = machine.group()
    machine.stack.append({})
    _set_items(machine, values)


def _call(machine: _Machine, name: Any, arguments: Any, named: Any = None) -> None:
    if not isinstance(name, Name) or not isinstance(arguments, tuple):
        raise Refused("the pickle calls something that is not a name")
    machine.stack.append(Made(name, arguments, named=dict(named or {})))


def _reduce(machine: _Machine, _: Any) -> None:
    arguments, name = machine.pop(), machine.pop()
    _call(machine, name, arguments)


def _new_with_names(machine: _Machine, _: Any) -> None:
    named, arguments, name = machine.pop(), machine.pop(), machine.pop()
    if type(named) is not dict:
        raise Refused("the pickle calls something with names that are no dictionary")
    _call(machine, name, arguments, named)


def _global(machine: _Machine, argument: str) -> None:
    module, _, name = argument.partition(" ")
    machine.stack.append(Name(module, name))


def _stack_global(machine: _Machine, _: Any) -> None:
    name, module = machine.pop(), machine.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise Refused("the pickle asks for a name that is not text")
    machine.stack.append(Name(module, name))


def _instance(machine: _Machine, argument: str) -> None:
    values = machine.group()
    module, _, name = argument.partition(" ")
    _call(machine, Name(module, name), tuple(values))


def _object(machine: _Machine, _: Any) -> None:
    values = machine.group()
    _call(machine, values[0], tuple(values[1:]))


def _build(machine: _Machine, _: Any) -> None:
    state, target = machine.pop(), machine.top()
    if not isinstance(target, Made) or target.state is not None:
        raise Refused("the pickle sets the state of something that has none")
    target.state = state


def _put(machine: _Machine, argument: Any) -> None:
    machine.memo[int(argument)] = machine.top()


def _get(machine: _Machine, argument: Any) -> None:
    machine.stack.append(machine.memo[int(argument)])


_PUSHED = (
    {"INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"}
    | {"STRING", "BINSTRING", "SHORT_BINSTRING"}
    | {"BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"}
    | {"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"}
)
_SILENT = frozenset({"PROTO", "FRAME", "READONLY_BUFFER"})
_ACTS: dict[str, Callable[[_Machine, Any], None]] = {
    "NONE": lambda machine, _: machine.stack.append(None),
    "NEWTRUE": lambda machine, _: machine.stack.append(True),
    "NEWFALSE": lambda machine, _: machine.stack.append(False),
    "EMPTY_LIST": lambda machine, _: machine.stack.append([]),
    "EMPTY_TUPLE": lambda machine, _: machine.stack.append(()),
    "EMPTY_DICT": lambda machine, _: machine.stack.append({}),
    "EMPTY_SET": lambda machine, _: machine.stack.append(set()),
    "MARK": lambda machine, _: machine.stack.append(_MARK),
    "POP": lambda machine, _: machine.stack.pop(),
    "POP_MARK": _drop_group,
    "DUP": lambda machine, _: machine.stack.append(machine.top()),
    "APPEND": _append,
    "APPENDS": lambda machine, _: _extend(machine, machine.group()),
    "LIST": lambda machine, _: machine.stack.append(machine.group()),
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.group())),
    "TUPLE1": _tuple(1),
    "TUPLE2": _tuple(2),
    "TUPLE3": _tuple(3),
    "DICT": _dict,
    "SETITEM": _set_item,
    "SETITEMS": lambda machine, _: _set_items(machine, machine.group()),
    "ADDITEMS": _add_items,
    "FROZENSET": lambda machine, _: machine.stack.append(frozenset(map(_key, machine.group()))),
    "GLOBAL": _global,
    "STACK_GLOBAL": _stack_global,
    "REDUCE": _reduce,
    "NEWOBJ": _reduce,
    "NEWOBJ_EX": _new_with_names,
    "INST": _instance,
    "OBJ": _object,
    "BUILD": _build,
    "PUT": _put,
    "BINPUT": _put,
    "LONG_BINPUT": _put,
    "MEMOIZE": lambda machine, _: _put(machine, len(machine.memo)),
    "GET": _get,
    "BINGET": _get,
    "LONG_BINGET": _get,
}


# Arrow's columns of text, read from their buffers with every offset checked.

_OFFSETS = {"string": "<i4", "utf8": "<i4", "large_string": "<i8", "large_utf8": "<i8"}


def strings(to: Any, value: Any) -> list[str | None]:
    """The texts of a pickled Arrow array or chunked array; null is None.

    Args:
        to: The conversion (`plain.Plain`) that the value belongs to.

    Raises:
        Refused: it is no column of text.
        ValueError: an offset points outside its buffer.
    """
    if not isinstance(value, Made):
        raise Refused("the pickle holds an Arrow column without data")
    if value.name.name == "chunked_array":
        chunks = value.arguments[0] if value.arguments else []
        return [text for chunk in chunks for text in strings(to, chunk)]
    if value.name.name != "_restore_array" or len(value.arguments) != 1:
        raise Refused(f"the pickle asks for {value.name}, which data do not need")
    kind, length, _, offset, buffers, *_ = value.arguments[0]
    if not isinstance(kind, Made) or kind.name.name not in ("type_for_alias", *_OFFSETS):
        raise Refused("the pickle holds an Arrow column that is no text")
    alias = kind.arguments[0] if kind.arguments else kind.name.name
    if alias not in _OFFSETS or not isinstance(buffers, list) or len(buffers) != 3:
        raise Refused(f"the pickle holds an Arrow column of {str(alias)[:40]}, not of text")
    if type(length) is not int or type(offset) is not int or length < 0 or offset < 0:
        raise ValueError("an Arrow column without a valid length")
    to.spend(length)
    valid, offsets, data = (_buffer(to, part) for part in buffers)
    return _texts(valid, offsets, data, _OFFSETS[alias], length, offset)


def _texts(
    valid: bytes | None, offsets: bytes | None, data: bytes | None, kind: str, length: int, at: int
) -> list[str | None]:
    import numpy as np

    if not length:
        return []
    size = int(kind[-1])
    if offsets is None or len(offsets) < (at + length + 1) * size:
        raise ValueError("an Arrow column with fewer offsets than rows")
    edges = np.frombuffer(offsets, dtype=kind, count=at + length + 1)[at:]
    text = data or b""
    if edges[0] < 0 or (np.diff(edges) < 0).any() or edges[-1] > len(text):
        raise ValueError("an offset of an Arrow column points outside its text")
    if valid is not None and len(valid) * 8 < at + length:
        raise ValueError("an Arrow column with fewer validity bits than rows")
    present = (
        np.ones(length, dtype=bool)
        if valid is None
        else np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")[at : at + length]
    )
    places = edges.tolist()
    return [
        text[places[i] : places[i + 1]].decode("utf-8") if present[i] else None
        for i in range(length)
    ]


def _buffer(to: Any, value: Any) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, Made) or value.name.name != "py_buffer" or not value.arguments:
        raise Refused("the pickle holds an Arrow column without buffers")
    held = to.of(value.arguments[0])
    if not isinstance(held, bytes):
        raise ValueError("a buffer that holds no bytes")
    return held


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


def listed(to: Any, value: Any) -> list[Any]:
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


def _frame(to: Any, value: Made) -> Frame:
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


def _series(to: Any, value: Made) -> list[Any]:
    state = value.state
    manager = state.get("_mgr", state.get("_data")) if isinstance(state, dict) else None
    if not isinstance(manager, Made):
        raise ValueError("a series without its values")
    blocks, axes = _blocks(to, manager)
    values = listed(to, blocks[0][0])
    if len(blocks) != 1 or len(values) != len(axes[0]):
        raise ValueError("the values of a series do not fit its index")
    return values


def _blocks(to: Any, manager: Made) -> tuple[list[tuple[Any, list[int]]], list[list[Any]]]:
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


def _places(to: Any, value: Any) -> list[int]:
    if isinstance(value, Made) and value.name.name == "BlockPlacement":
        value = value.arguments[0]
    if isinstance(value, Made) and value.name.name == "slice":
        start, stop, step = (*value.arguments, None, None)[:3]
        places = range(*slice(start, stop, step).indices(1_000_000))
        return list(places)
    if isinstance(value, int):
        return [value]
    return [int(place) for place in listed(to, to.of(value))]


def _rows_of(to: Any, values: Any, count: int) -> list[list[Any]]:
    """The columns of a block: a block is an array of (columns × rows), or one column."""
    if isinstance(values, list) and (not values or isinstance(values[0], list)) and count != 1:
        return [listed(to, row) for row in values]
    if isinstance(values, list) and len(values) == 1 and isinstance(values[0], list):
        return [listed(to, values[0])]
    if getattr(values, "ndim", 1) == 2:
        return [listed(to, row) for row in values]
    return [listed(to, values)]


def _index(to: Any, value: Made) -> list[Any]:
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


def _backed(to: Any, value: Made) -> Any:
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


def _masked(to: Any, value: Made) -> list[Any]:
    """`IntegerArray`, `FloatingArray`, `BooleanArray`: values and where they are missing."""
    state = value.state if isinstance(value.state, dict) else {}
    data, mask = listed(to, to.of(state.get("_data"))), listed(to, to.of(state.get("_mask")))
    if len(data) != len(mask):
        raise ValueError("a column whose mask has another length")
    return [None if missing else item for item, missing in zip(data, mask, strict=True)]


def _arrow(to: Any, value: Made) -> list[Any]:
    state = value.state if isinstance(value.state, dict) else {}
    return strings(to, state.get("_pa_array", state.get("_data")))


KNOWN: dict[str, Callable[[Any, Made], Any]] = {
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
