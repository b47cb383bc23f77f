"""The pickle machine: opcodes → inert values. A name stays a name; nothing is imported or called.

`pickletools` of the standard library reads the opcodes. This machine keeps the stack
and the memo, and writes down what a real unpickler would have called, as `Made`.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

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
