"""How much memory a process can still have, and whether an error says that there was none left."""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator
from pathlib import Path

_MEMORY, _STATM = Path("/proc/meminfo"), Path("/proc/self/statm")
_GROUPS, _CONTROL = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
#: Of each version of control groups: its folder, most memory, memory used, and what of it the
#: system takes back when it needs to (a key of `memory.stat`).
_V2 = ("", "memory.max", "memory.current", "inactive_file")
_V1 = ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def available() -> int | None:
    """Bytes of memory that this process can still have; null where the system does not say.

    The least of what the machine has left, what its control groups leave it (a container's
    limit, on every level), and what a limit of its address space does (`ulimit -v`).
    """
    free = [line for line in _text(_MEMORY).splitlines() if line.startswith("MemAvailable:")]
    found = [int(line.split()[1]) * 1024 for line in free]
    found += _left_by_groups()
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most != resource.RLIM_INFINITY:
        pages = _text(_STATM).split()
        found.append(most - (int(pages[0]) if pages else 0) * resource.getpagesize())
    return max(0, min(found)) if found else None


def _left_by_groups() -> Iterator[int]:
    # In a container the group's path is often one of the host, which is not seen: then it is `/`.
    named = [line.split(":", 2) for line in _text(_GROUPS).splitlines() if line.count(":") >= 2]
    for folder, most, used, taken_back in (_V2, _V1):
        groups = {path for _, which, path in named if folder in which.split(",")} | {"/"}
        for group in sorted(one for one in groups if ".." not in one):
            place = _CONTROL / folder / group.strip("/")
            while place != _CONTROL.parent:
                limit = _text(place / most).strip()
                if limit.isdigit():
                    stat = dict(
                        line.split(" ", 1) for line in _text(place / "memory.stat").splitlines()
                    )
                    held = int(_text(place / used).strip() or 0) - int(stat.get(taken_back, 0))
                    yield int(limit) - max(0, held)
                if place == _CONTROL / folder:
                    break
                place = place.parent


def is_exhausted(error: BaseException) -> bool:
    """Whether an error, or what caused it, says that memory ran out.

    Arrow and NumPy raise kinds of `MemoryError`; DuckDB, Torch, the system, its loader and its
    threads have words of their own.
    """
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if _says_so(cause):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _says_so(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or type(error).__name__.startswith("OutOfMem"):
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    text = str(error)[:2000].lower()
    return isinstance(error, OSError | ImportError | RuntimeError) and any(
        word in text for word in _WORDS
    )


_WORDS = (
    "cannot allocate memory",
    "can't allocate memory",
    "failed to map segment",
    "can't start new thread",
    "out of memory",
    "malloc of size",
    "realloc of size",
)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
