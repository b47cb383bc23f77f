"""The few Linux calls the jail needs, by ctypes (Python 3.11 has no `os.unshare`)."""

from __future__ import annotations

import ctypes
import os
import struct

NEWNS, NEWCGROUP, NEWUTS, NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000

MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
MNT_DETACH = 2
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_PDEATHSIG, _DUMPABLE, _BOUNDING_DROP, _SECUREBITS, _NO_NEW_PRIVS = 1, 4, 24, 28, 38
_AMBIENT, _AMBIENT_CLEAR = 47, 4
#: noroot and no ambient raise, both locked; keep_caps off and locked.
_SECURE = 0b11100011

#: Number of `pivot_root` and of `capset`; `mount_setattr` is 442 everywhere.
_NUMBERS = {"x86_64": (155, 126), "aarch64": (41, 91)}
_MOUNT_SETATTR = 442

_libc = ctypes.CDLL(None, use_errno=True)


def machine() -> str:
    return os.uname().machine


def _call(name: str, *arguments: object) -> int:
    result = int(getattr(_libc, name)(*arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    _call("unshare", ctypes.c_int(flags))


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    _call(
        "mount",
        source.encode(),
        target.encode(),
        kind.encode(),
        ctypes.c_ulong(flags),
        options.encode(),
    )


def read_only(path: str) -> None:
    """The mount at `path` and all below it: read-only, no set-uid, no devices."""
    packed = struct.pack("QQQQ", _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, 0, 0, 0)
    buffer = ctypes.create_string_buffer(packed, len(packed))
    _call(
        "syscall",
        ctypes.c_long(_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        path.encode(),
        ctypes.c_uint(_AT_RECURSIVE),
        buffer,
        ctypes.c_size_t(len(packed)),
    )


def pivot(root: str) -> None:
    """Make `root` the root folder and let go of everything outside it."""
    os.chdir(root)
    _call("syscall", ctypes.c_long(_NUMBERS[machine()][0]), b".", b".")
    _call("umount2", b".", ctypes.c_int(MNT_DETACH))
    os.chdir("/")


def prctl(option: int, *arguments: int) -> None:
    padded = [*arguments, 0, 0, 0, 0][:4]
    _call("prctl", ctypes.c_int(option), *(ctypes.c_ulong(value) for value in padded))


def die_with_parent() -> None:
    prctl(_PDEATHSIG, 9)


def hide_memory() -> None:
    """No other process of this user may trace this one or open its memory."""
    prctl(_DUMPABLE, 0)


def no_new_privileges() -> None:
    prctl(_NO_NEW_PRIVS, 1)


def lock_capabilities() -> None:
    """Take away the means of getting a capability back, also by running a program."""
    prctl(_AMBIENT, _AMBIENT_CLEAR)
    prctl(_SECUREBITS, _SECURE)
    for capability in range(64):
        try:
            prctl(_BOUNDING_DROP, capability)
        except OSError:  # past the last one this kernel knows
            break


def forget_capabilities() -> None:
    """Give up every capability this process holds."""
    header = struct.pack("Ii", 0x20080522, 0)
    _call(
        "syscall",
        ctypes.c_long(_NUMBERS[machine()][1]),
        ctypes.create_string_buffer(header, len(header)),
        ctypes.create_string_buffer(24),
    )


def known_architecture() -> bool:
    return machine() in _NUMBERS
