"""Seccomp filter: the system calls that a program may make; all others do not exist for it.

Namespaces, mounts and limits keep a program in. The filter leaves it what Python, its threads and
its numerical libraries need (`allowed_calls.txt`), so that neither a call by which it could make
namespaces or hold memory that no limit counts, nor one that a later kernel adds, is in reach.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Iterator
from pathlib import Path

from . import kernel

# Read here: the filter is installed where this file is not seen any more.
_LISTED = Path(__file__).with_name("allowed_calls.txt").read_text(encoding="utf-8")
#: Architecture → its column in the list of calls, and its number in the kernel's audit.
_ARCHITECTURES = {"x86_64": (1, 0xC000003E), "aarch64": (2, 0xC00000B7)}
_X32 = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
#: Offsets in what the filter is given: number, architecture, low half of the first argument.
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_SET_SECCOMP, _MODE_FILTER = 22, 2


def allowed(machine: str) -> dict[str, tuple[int, list[str]]]:
    """Name of each listed call of an architecture → its number, and the words of its rule."""
    column, _ = _ARCHITECTURES[machine]
    lines = (line.split() for line in _LISTED.splitlines() if line and not line.startswith("#"))
    return {words[0]: (int(words[column]), words[3:]) for words in lines if words[column] != "-"}


def program(machine: str) -> bytes:
    """The filter as the kernel reads it: instructions of classic BPF."""
    lines = [
        _line(_LOAD, 0, 0, _ARCHITECTURE),
        _line(_EQUAL, 1, 0, _ARCHITECTURES[machine][1]),
        _line(_RETURN, 0, 0, _KILL),  # 32-bit calls
        _line(_LOAD, 0, 0, _NUMBER),
        _line(_AT_LEAST, 0, 1, _X32),
        _line(_RETURN, 0, 0, _KILL),
    ]
    for number, rule in allowed(machine).values():
        checks = [*_checks(rule)]
        lines += [_line(_EQUAL, 0, len(checks), number), *checks]
    return b"".join([*lines, _refuse("ENOSYS")])


def _checks(rule: list[str]) -> Iterator[bytes]:
    """Instructions that decide a call whose number has been found."""
    match rule:
        case []:
            yield _line(_RETURN, 0, 0, _ALLOW)
        case ["never", error]:
            yield _refuse(error)
        case [argument, "in", values, error]:
            yield _line(_LOAD, 0, 0, _ARGUMENTS + 8 * int(argument))
            for value in values.split(","):
                yield _line(_EQUAL, 0, 1, int(value, 0))
                yield _line(_RETURN, 0, 0, _ALLOW)
            yield _refuse(error)
        case [argument, "without", bits, error]:
            yield _line(_LOAD, 0, 0, _ARGUMENTS + 8 * int(argument))
            yield _line(_ANY_BIT, 1, 0, int(bits, 0))
            yield _line(_RETURN, 0, 0, _ALLOW)
            yield _refuse(error)
        case _:
            raise ValueError(f"not a rule for a system call: {' '.join(rule)}")


def _refuse(error: str) -> bytes:
    return _line(_RETURN, 0, 0, _ERRNO | getattr(errno, error))


def _line(code: int, yes: int, no: int, value: int) -> bytes:
    """One instruction: lines to skip where a comparison holds and where it does not."""
    return struct.pack("HBBI", code, yes, no, value)


def allow_listed_calls() -> None:
    """Install the filter for this process and all it will start."""
    kernel.no_new_privileges()
    text = program(kernel.machine())
    pinned = ctypes.create_string_buffer(text, len(text))
    header = struct.pack("HxxxxxxP", len(text) // 8, ctypes.addressof(pinned))
    instructions = ctypes.create_string_buffer(header, len(header))
    kernel.prctl(_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(instructions))
