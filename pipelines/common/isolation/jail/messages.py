"""Plain data between the trusted and the untrusted process.

One line of JSON per message. Values are tagged so that tuples, sets, bytes and
non-finite floats survive; anything else crosses as a numbered handle. The
reader trusts nothing: a malformed line is an error, never code.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import zip_longest
from typing import Any, BinaryIO

#: Longest message, in bytes.
LIMIT = 32 * 1024 * 1024
_DEPTH = 200


class Broken(Exception):
    """The other side sent no message, or one that is not in form."""


def send(stream: BinaryIO, message: Any) -> None:
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    line = stream.readline(LIMIT)
    if not line.endswith(b"\n"):
        raise Broken("the program ended before its tests did" if not line else "message too long")
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Broken("a message that is not JSON") from error


def pack(value: Any, handle: Callable[[Any], int], depth: int = 0) -> Any:
    """Tagged form of a value; what is not plain data becomes a handle."""
    if depth > _DEPTH:
        raise ValueError("nested too deeply")
    if value is None or value is True or value is False:
        return value
    if isinstance(value, int):
        return {"i": hex(value)}
    if isinstance(value, float):
        return {"f": float.hex(value)}
    if isinstance(value, complex):
        return {"c": [float.hex(value.real), float.hex(value.imag)]}
    if isinstance(value, str):
        return {"s": value}
    if isinstance(value, (bytes, bytearray)):
        return {"y" if isinstance(value, bytearray) else "b": value.hex()}
    for tag, kind in (("l", list), ("t", tuple), ("e", set), ("z", frozenset)):
        if isinstance(value, kind):
            items = [pack(item, handle, depth + 1) for item in value]
            # One form for equal sets, so that a set that was left alone is known to be.
            return {tag: sorted(items, key=json.dumps) if tag in "ez" else items}
    if isinstance(value, dict):
        return {
            "d": [
                [pack(key, handle, depth + 1), pack(item, handle, depth + 1)]
                for key, item in value.items()
            ]
        }
    return {"h": handle(value)}


def unpack(message: Any, handle: Callable[[int], Any], depth: int = 0) -> Any:
    """The value; the reverse of `pack`."""
    if message is None or message is True or message is False:
        return message
    if depth > _DEPTH or not isinstance(message, dict) or len(message) != 1:
        raise Broken("a value that is not in form")
    ((tag, body),) = message.items()
    try:
        if tag in _MANY:
            return _MANY[tag](unpack(item, handle, depth + 1) for item in body)
        if tag == "d":
            pairs = ((unpack(k, handle, depth + 1), unpack(v, handle, depth + 1)) for k, v in body)
            return dict(pairs)
        if tag == "h":
            return handle(int(body))
        return _ONE[tag](body)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise Broken("a value that is not in form") from error


def restore(value: Any, after: Any) -> None:
    """Make `value` what `after` is, in place and as deep as both are of one kind.

    Whoever holds the list, dictionary, set or byte array then sees the change, as
    if the program had been called in the same process.
    """
    if isinstance(value, (list, tuple)) and isinstance(after, (list, tuple)):
        for item, other in zip(value, after, strict=False):
            restore(item, other)
        if isinstance(value, list):
            value[:] = [
                entry if _one_kind(entry, other) else other
                for entry, other in zip_longest(value[: len(after)], after)
            ]
    elif isinstance(value, dict) and isinstance(after, dict):
        old = {key: value[key] for key in after if key in value}
        for key, item in old.items():
            restore(item, after[key])
        value.clear()
        for key, other in after.items():
            value[key] = old[key] if _one_kind(old.get(key), other) else other
    elif isinstance(value, set) and isinstance(after, (set, frozenset)):
        value.clear()
        value.update(after)
    elif isinstance(value, bytearray) and isinstance(after, bytearray):
        value[:] = after


def _one_kind(value: Any, other: Any) -> bool:
    """Both are the same kind of thing that can be changed in place, so `restore` has done it."""
    return type(value) is type(other) and isinstance(value, (list, dict, set, bytearray))


_MANY: dict[str, Callable[[Any], Any]] = {"l": list, "t": tuple, "e": set, "z": frozenset}
_ONE: dict[str, Callable[[Any], Any]] = {
    "i": lambda body: int(body, 16),
    "f": float.fromhex,
    "c": lambda body: complex(float.fromhex(body[0]), float.fromhex(body[1])),
    "s": lambda body: body if isinstance(body, str) else "",
    "b": bytes.fromhex,
    "y": bytearray.fromhex,
}
