"""Seccomp filter: system calls that no answer to a programming question needs.

Namespaces, mounts and limits keep a program in; this takes away the calls by
which it could make new namespaces, hold memory that no limit counts
(memfd, System V shared memory), open sockets of any family but AF_UNIX, or reach
rarely tested corners of the kernel.
"""

from __future__ import annotations

import ctypes
import errno
import json
import struct
from pathlib import Path

from . import kernel

#: Architecture → name of a refused call → its number.
_REFUSED = json.loads(Path(__file__).with_name("refused_calls.json").read_text(encoding="utf-8"))
# Asked of by glibc, which falls back to `clone` when told it does not exist.
_CLONE3 = 435
_CLONE = {"x86_64": 56, "aarch64": 220}
_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000
_NAMESPACES = 0x7E020000 | 0x80
#: `socket` and `socketpair`: only AF_UNIX, which asyncio and multiprocessing need within a
#: program. Some families (AF_VSOCK) are not separated by a network namespace.
_SOCKETS = {"x86_64": (41, 53), "aarch64": (198, 199)}
_AF_UNIX = 1

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_SET_SECCOMP, _MODE_FILTER = 22, 2


def _program(machine: str) -> bytes:

    def line(code: int, yes: int, no: int, value: int) -> bytes:
        return struct.pack("HBBI", code, yes, no, value)

    lines = [
        line(_LOAD, 0, 0, 4),  # architecture
        line(_EQUAL, 1, 0, _ARCHITECTURE[machine]),
        line(_RETURN, 0, 0, _KILL),
        line(_LOAD, 0, 0, 0),  # number
        line(_AT_LEAST, 0, 1, _X32),
        line(_RETURN, 0, 0, _KILL),
        line(_EQUAL, 0, 1, _CLONE3),
        line(_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    for number in _REFUSED[machine].values():
        lines += [line(_EQUAL, 0, 1, number), line(_RETURN, 0, 0, _ERRNO | errno.EPERM)]
    for number in _SOCKETS[machine]:
        lines += [
            line(_EQUAL, 0, 4, number),
            line(_LOAD, 0, 0, 16),  # first argument: family, of which the kernel reads 32 bits
            line(_EQUAL, 0, 1, _AF_UNIX),
            line(_RETURN, 0, 0, _ALLOW),
            line(_RETURN, 0, 0, _ERRNO | errno.EAFNOSUPPORT),
        ]
    lines += [
        line(_EQUAL, 0, 3, _CLONE[machine]),
        line(_LOAD, 0, 0, 16),  # first argument: flags
        line(_ANY_BIT, 0, 1, _NAMESPACES & ~0x80),
        line(_RETURN, 0, 0, _ERRNO | errno.EPERM),
        line(_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(lines)


def refuse_dangerous_calls() -> None:
    """Install the filter for this process and all it will start."""
    kernel.no_new_privileges()
    program = ctypes.create_string_buffer(code := _program(kernel.machine()), len(code))
    header = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(program))
    pinned = ctypes.create_string_buffer(header, len(header))
    kernel.prctl(_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(pinned))
