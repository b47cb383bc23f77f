"""This machine: memory that is left, threads, file systems, and when Python collects garbage."""

from __future__ import annotations

import errno
import gc
import os
import resource
import socket
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from routeyard.schemas.errors import BadInput, ExplainedError

# How much memory a process can still have, and the error that says that it is not enough.
#
# A limit of address space (`ulimit -v`) is kept apart: libraries reserve far more of it than they
# use. Drawing a plot reserves 64 GiB at once, and is left out where they cannot be had.

_MEMORY, _STATM = Path("/proc/meminfo"), Path("/proc/self/statm")
_GROUPS, _CONTROL = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
#: Of each version of control groups: its folder, most memory, memory used, and what of it the
#: system takes back when it needs to (a key of `memory.stat`).
_V2 = ("", "memory.max", "memory.current", "inactive_file")
_V1 = ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


#: Bytes of address space that our libraries reserve while they work, and without which they cannot
#: be loaded.
LIBRARIES, LOADING = 1_000_000_000, 500_000_000


class OutOfMemory(ExplainedError, MemoryError):
    """There is, or was, not enough memory: what for, how much, and what to do.

    No `RouteyardError`: what reads a stranger's file takes those for faults of the file.
    """

    def __init__(self, what: str, *, where: str | None = None, next_step: str | None = None):
        advice = next_step or (
            "close what else runs, use a machine or container with more memory, or make less at "
            "once: fewer questions or models, a smaller --jobs"
        )
        super().__init__(what, where=where, next_step=advice)


def collect_rarely() -> None:
    """Have Python look for garbage after 50,000 new objects instead of 700, in a whole process.

    Libraries and syntax trees are millions of objects and never garbage; Python's own thresholds
    (700, 10, 10) walk them again and again while more of them is loaded.
    """
    gc.set_threshold(50_000, 20, 20)


def return_memory() -> None:
    """Have Arrow take memory from the system's allocator, before it is imported.

    Its own pool gives pages back and asks for them anew: a tenth of what `verify` took, and a fifth
    of its memory. `ARROW_DEFAULT_MEMORY_POOL` names another one; child processes follow.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


#: What a driver of GPUs leaves here: without any, torch is not imported to look for one.
_DRIVERS = (Path("/dev/nvidiactl"), Path("/dev/kfd"), Path("/dev/dxg"))


def device_of(asked: str | None = "auto") -> str:
    """`cpu`, `cuda` (or one of several, `cuda:1`) or `mps`; `auto` is a GPU where there is one.

    Raises:
        BadInput: there is no such device here.
    """
    if asked == "cpu":
        return "cpu"
    apple = sys.platform == "darwin"
    if not (apple or any(driver.exists() for driver in _DRIVERS)) or find_spec("torch") is None:
        there = {"cpu"}
    else:
        import torch

        there = {"cpu", *(f"cuda:{k}" for k in range(torch.cuda.device_count()))}
        there |= {"cuda"} if torch.cuda.is_available() else set()
        there |= {"mps"} if torch.backends.mps.is_available() else set()
    if asked in (None, "auto"):
        return next((name for name in ("cuda", "mps") if name in there), "cpu")
    if asked not in there:
        raise BadInput(
            f"there is no device {asked!r} here",
            where="device",
            next_step=f"give one of auto, {', '.join(sorted(there))}",
        )
    return str(asked)


def check(what: str, need: int, *, next_step: str | None = None) -> None:
    """Stop before work begins that does not fit.

    Args:
        what: Of the sentence "… works on about 3.1 GB at once".
        need: Estimate of the bytes that it works on at once.

    Raises:
        OutOfMemory: it needs more than can be had; says how much of each.
    """
    have, space = available(), address_space()
    if have is not None and need > have:
        raise OutOfMemory(
            f"{what} works on about {_gb(need)} at once, and {_gb(have)} of memory can be had",
            next_step=next_step,
        )
    reserved = need + LIBRARIES
    if space is not None and reserved > space:
        raise OutOfMemory(
            f"{what} works on about {_gb(need)} and reserves about {_gb(reserved)} of address "
            f"space, and the limit of this process leaves {_gb(space)}",
            next_step="lift the limit (`ulimit -v unlimited`), and limit memory instead where it "
            "has to be: `systemd-run -p MemoryMax=8G`, `docker run -m 8g`",
        )


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


def available() -> int | None:
    """Bytes of memory that this process can still have; null where the system does not say.

    The least of what the machine has left and what its control groups leave it (a container's
    limit, on every level).
    """
    free = [line for line in _text(_MEMORY).splitlines() if line.startswith("MemAvailable:")]
    results = [int(line.split()[1]) * 1024 for line in free]
    results += _left_by_groups()
    return max(0, min(results)) if results else None


def address_space() -> int | None:
    """Bytes of address space that a limit leaves this process; null without one."""
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY:
        return None
    pages = _text(_STATM).split()
    return max(0, most - (int(pages[0]) if pages else 0) * resource.getpagesize())


def _left_by_groups() -> Iterator[int]:
    # In a container the group's path is often one of the host, which is not seen: then it is `/`.
    named = [line.split(":", 2) for line in _text(_GROUPS).splitlines() if line.count(":") >= 2]
    for folder, most, used, taken_back in (_V2, _V1):
        groups = {path for _, which, path in named if folder in which.split(",")} | {"/"}
        for group in sorted(item for item in groups if ".." not in item):
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
    """Whether an error, or what it was raised from, says that memory ran out.

    Arrow and NumPy raise kinds of `MemoryError`; DuckDB, Torch, the system, its loader and its
    threads use other words.
    """
    cause: BaseException | None = error
    for _ in range(20):
        if cause is None:
            break
        if _says_so(cause):
            return True
        cause = cause.__cause__
    return False


def _says_so(error: BaseException) -> bool:
    if isinstance(error, MemoryError | BrokenExecutor):  # a worker process was killed
        return True
    if type(error).__name__.startswith("OutOfMem"):
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    # Arrow's errors have their own kinds; others have none.
    ours = isinstance(error, OSError | ImportError | RuntimeError)
    text = str(error)[:2000].lower()
    return (ours or type(error).__module__.startswith("pyarrow")) and any(
        word in text for word in _WORDS
    )


_WORDS = (
    "cannot allocate memory",
    "can't allocate memory",
    "failed to map segment",
    "can't start new thread",
    "failed to launch worker thread",
    "out of memory",
    "malloc of size",
    "realloc of size",
)


def named(error: BaseException, doing: str) -> OutOfMemory | None:
    """The error that says that memory ran out, and what could be had; null for any other."""
    if isinstance(error, OutOfMemory):
        return error
    if not is_exhausted(error):
        return None
    have, space = available(), address_space()
    left = [f"{_gb(have)} of memory can be had now"] if have is not None else []
    left += [f"{_gb(space)} of address space are left by `ulimit -v`"] if space is not None else []
    killed = isinstance(error, BrokenExecutor)
    what = "a worker process was killed, as the system does when memory is short," if killed else (
        "memory ran out"
    )  # fmt: skip
    first = (str(error).splitlines() or [""])[0][:200]
    return OutOfMemory(
        f"{what} in {doing} ({type(error).__name__}{': ' * bool(first)}{first}); "
        + "; ".join(left or ["how much there is, the system does not say"])
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


# What a fit takes: one thread of arithmetic, so that sums have one order, and its memory.

_LOCK = threading.Lock()
_INSIDE = [0]
_LIMIT = ExitStack()
_THREAD = threading.local()


def _limit(kind: str) -> Any:
    """One thread for the loaded libraries of a kind alone: leaving it changes no others."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api=kind).limit(limits=1)


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Sums have one order on every machine and runner while any fit is inside.

    The limit of matrix products is one of the whole process: the first that enters sets it, the
    last that leaves lifts it, where it is the thread that set it (no other one can). OpenMP's is
    one of the thread, and each thread sets its own.
    """
    with _LOCK:
        if not _INSIDE[0]:
            _LIMIT.enter_context(_limit("blas"))
        _INSIDE[0] += 1
    limited = getattr(_THREAD, "limited", False)
    _THREAD.limited = True
    try:
        with nullcontext() if limited else _limit("openmp"):
            yield
    finally:
        _THREAD.limited = limited
        with _LOCK:
            _INSIDE[0] -= 1
            if not _INSIDE[0]:
                _LIMIT.close()


#: Also held while torch's generator, which is one of the whole process, is in use.
TORCH = threading.Lock()
_THREADS: list[int] = []


@contextmanager
def torch_in_one_thread() -> Iterator[int]:
    """Torch computes in one thread while any caller is inside; yields how many it had.

    A matrix product of several threads ends in other last bits than that of one. Callers may
    be threads: the first sets the limit, the last lifts it.
    """
    import torch

    with TORCH:
        _THREADS.append(torch.get_num_threads())
        torch.set_num_threads(1)
        had = _THREADS[0]
    try:
        yield had
    finally:
        with TORCH:
            _THREADS.pop()
            if not _THREADS:
                torch.set_num_threads(had)


@contextmanager
def peak_memory() -> Iterator[Callable[[], float]]:
    """Yields a function: the largest resident memory of the process, MB, while inside.

    Sampled every 20 ms. Fits that share a process as threads share the figure.
    """
    stop, seen = threading.Event(), [_resident()]

    def watch() -> None:
        while not stop.wait(0.02):
            seen[0] = max(seen[0], _resident())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield lambda: max(seen[0], _resident())
    finally:
        stop.set()
        thread.join()


def _resident() -> float:
    """Resident memory in MB; the process's peak where there is no /proc."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


# Which process of which machine this is, and whether another one of the same place still runs.
#
# A process id means one process only within a boot of a machine and a pid namespace: two
# containers may share a host name and a boot, and each has a process 1.


def pid_space() -> str:
    """Host name, boot, and pid and time namespace of this process, as one text.

    Where one of them cannot be known (no /proc, or that of another namespace), a text that no
    other process gets: then no process id is looked up.
    """
    name = socket.gethostname()
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        spaces = [str(Path(f"/proc/self/ns/{kind}").stat().st_ino) for kind in _kinds()]
        if boot and Path("/proc/self").readlink() == Path(str(os.getpid())):
            return " ".join([name, boot, *spaces])
    except OSError:
        pass
    return f"{name} {uuid.uuid4().hex}"


def _kinds() -> list[str]:
    # A time namespace shifts the start times that /proc gives.
    return ["pid", "time"] if Path("/proc/self/ns/time").exists() else ["pid"]


def started(pid: int) -> str | None:
    """Start time of a living process of this place in clock ticks; null where unknown or dead."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command name may hold spaces and brackets: read behind the last one.
    state, *rest = text[text.rindex(")") + 2 :].split()
    # A killed child that its parent has not waited for answers nothing any more.
    return None if state in ("Z", "X") else rest[18]


def runs(pid: int) -> bool:
    """Whether a process of that id is there in this place."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


_MOUNTS = Path("/proc/self/mountinfo")
#: Kinds that several hosts can mount at once; of `fuse` those whose name tells nothing else.
_NETWORK = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "gpfs",
    "beegfs", "orangefs", "pvfs2", "ocfs2", "gfs2", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph",
    "fuse.juicefs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone", "fuse.beegfs", "fuse.moosefs",
})  # fmt: skip


def is_network(path: Path) -> bool:
    """Whether a path is on a file system that other hosts may have mounted too."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        where = path.resolve()
    except OSError:
        return False
    kind, depth = "", -1
    for line in lines:
        fields, _, rest = line.partition(" - ")
        words = fields.split()
        if len(words) < 5 or not rest:
            continue
        point = Path(_plain(words[4]))
        if where.is_relative_to(point) and len(point.parts) >= depth:  # a later mount covers
            kind, depth = rest.split()[0], len(point.parts)
    return kind in _NETWORK


def _plain(text: str) -> str:
    """A mount point without the escapes that the kernel writes."""
    for sign in " \t\n\\":
        text = text.replace(f"\\{ord(sign):03o}", sign)
    return text
