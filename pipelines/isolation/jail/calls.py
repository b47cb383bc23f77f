"""Seccomp filter: system calls that no answer to a programming question needs.

Namespaces, mounts and limits keep a program in; this takes away the calls by
which it could make new namespaces, hold memory that no limit counts
(memfd, System V shared memory), open sockets of any family but AF_UNIX, or reach
rarely tested corners of the kernel.
"""

from __future__ import annotations

import ctypes
import errno
import struct

from . import kernel

# name: (x86_64, aarch64); None where the architecture has no such call
_REFUSED: dict[str, tuple[int, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "quotactl": (179, 60),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "personality": (135, 92),
    "modify_ldt": (154, None),
    "vmsplice": (278, 75),
    "fanotify_init": (300, 262),
    "inotify_init1": (294, 26),
}
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
    column = 0 if machine == "x86_64" else 1
    refused = [n for numbers in _REFUSED.values() if (n := numbers[column]) is not None]

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
    for number in refused:
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
