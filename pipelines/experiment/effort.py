"""What a fit takes: one thread of arithmetic, so that sums have one order, and its memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_LOCK = threading.Lock()
_INSIDE = [0]
_LIMIT = ExitStack()


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Sums have one order on every machine and runner while any fit is inside.

    The limit is one of the whole process: the first that enters sets it, the last that leaves
    lifts it.
    """
    from threadpoolctl import threadpool_limits

    with _LOCK:
        if not _INSIDE[0]:
            _LIMIT.enter_context(threadpool_limits(limits=1))
        _INSIDE[0] += 1
    try:
        yield
    finally:
        with _LOCK:
            _INSIDE[0] -= 1
            if not _INSIDE[0]:
                _LIMIT.close()


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
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
