"""Calls functions in a child process with limits of time, memory and file size.

A function of a module takes plain arguments (JSON). Its result, or each piece
that it yields, comes back as JSON or as Arrow IPC: what comes from a process that read a
stranger's data is data, never a pickle.
"""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from routeyard.pipelines.common.machine import OutOfMemory
from routeyard.schemas.errors import RouteyardError

#: Kind and length of a piece of an answer.
HEADER = struct.Struct(">cQ")
#: Kinds: the result, one piece of several, a schema or rows in Arrow IPC, an error.
RESULT, ITEM, ARROW, ERROR = b"R", b"I", b"A", b"E"
#: Exit status of a child that ran out of memory: of what its limits allow, or of less, because a
#: limit of the process that started it is lower.
NO_MEMORY, LIMITED_FROM_OUTSIDE = 86, 87
#: Longest wait for a child to start, in seconds: it imports its libraries.
START_S = 120.0


#: A function of a module, which the child finds by its name.
Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may take.

    Attributes:
        memory: Bytes of address space beyond those of the process before its first call.
        wall_s: Seconds that the caller waits; its own time between two pieces does not count.
        cpu_s: Seconds of computing; None for no limit.
        file_size: Bytes of the largest file that it may write.
        answer: Bytes of the largest piece of an answer.
    """

    memory: int
    wall_s: float
    cpu_s: float | None = None
    file_size: int = 0
    answer: int = 1 << 31


class LimitExceeded(RouteyardError):
    """A call took more than its limits allow; `limit` is `time` or `memory`."""

    def __init__(self, limit: str) -> None:
        self.limit = limit
        super().__init__(
            f"a call in the limited process took more {limit} than it may",
            next_step="give it less to do, or raise the limit",
        )


class ProcessEnded(RouteyardError):
    """The child process crashed during a call."""


class FunctionFailed(Exception):
    """What a function raised that is no error of ours; its text begins with the error's class."""


class Worker:
    """A child process that is started by the first call, and again after a limit or a crash.

    `call` may be used by several threads; `stream` by one at a time, without other calls between
    its pieces.
    """

    def __init__(self, limits: Limits, setup: Function, *args: Any) -> None:
        """Args:
        limits: Of each call that names no others.
        setup: What the child runs once with `args`, before its limits are set.
        """
        self.limits = limits
        self._setup = (setup, args)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        self._end: Callable[[], object] | None = None

    def call(self, function: Function, *args: Any, limits: Limits | None = None) -> Any:
        """The result of a module's function in the child.

        Raises:
            LimitExceeded, ProcessEnded: the child has been ended; the next call starts another.
            OutOfMemory: it was killed from outside, or may have less memory than its limits.
            FunctionFailed: the function raised something.
            RouteyardError: the function raised this error of ours.
        """
        with self._lock:
            self._start()
            try:
                *_, result = self._exchange(function, args, limits or self.limits)
            except (RouteyardError, FunctionFailed):
                raise
            except BaseException:
                self.close()  # its answer may still come: the next call must not read it
                raise
            return result

    def stream(
        self, function: Function, *args: Any, limits: Limits | None = None
    ) -> Generator[Any, None, None]:
        """The pieces that a generator function yields in the child: JSON values, schemas, batches.

        An iterator that is left early ends the child. Raises as `call` does.
        """
        self._start()
        complete = False
        try:
            for piece in self._exchange(function, args, limits or self.limits):
                if piece is not None:  # the end of a generator
                    yield piece
            complete = True
        except (RouteyardError, FunctionFailed):
            complete = True
            raise
        finally:
            if not complete:
                self.close()

    def close(self) -> None:
        """End the child and its own children; a later call starts another."""
        self._process = None
        if self._end is not None:
            self._end()

    def _start(self) -> None:
        if self._process is not None and self._owner == os.getpid():
            if self._process.poll() is None:
                return
            self.close()
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "routeyard.pipelines.common.isolation.serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={
                "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
                "PYTHONHASHSEED": "0",
                "PATH": os.environ.get("PATH", ""),
                "LC_ALL": "C.UTF-8",
                # Arenas and pools reserve address space that is not used.
                "MALLOC_ARENA_MAX": "2",
                "OPENBLAS_NUM_THREADS": "1",
                "ARROW_DEFAULT_MEMORY_POOL": "system",
            },
            cwd="/",
            start_new_session=True,  # Ctrl-C is ours to handle
        )
        # At exit too, and when a worker in use is collected as garbage, whose generators run later.
        self._end = weakref.finalize(self, _end, self._process, self._owner)
        setup, args = self._setup
        try:
            for _ in self._exchange(setup, args, Limits(0, START_S)):
                pass
        except BaseException:
            self.close()
            raise

    def _exchange(self, function: Function, args: tuple[Any, ...], limits: Limits) -> Iterator[Any]:
        assert self._process is not None
        assert self._process.stdin is not None
        request = {
            "function": f"{function.__module__}:{function.__qualname__}",
            "args": args,
            **asdict(limits),
        }
        try:
            # Dates and the like are text there.
            self._process.stdin.write(json.dumps(request, default=str).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._ended() from error
        left = limits.wall_s
        while True:
            header, left = self._read(HEADER.size, left)
            kind, size = HEADER.unpack(header)
            if size > limits.answer:
                self.close()
                raise LimitExceeded("memory")
            body, left = self._read(size, left)
            if kind == ARROW:
                yield from _arrow(body)
                continue
            value = json.loads(body)
            if kind == ERROR:
                raise _error(value)
            yield value
            if kind == RESULT:
                return

    def _read(self, size: int, left: float) -> tuple[bytearray, float]:
        """So many bytes of the child's answer, and the seconds left to wait for more."""
        assert self._process is not None
        assert self._process.stdout is not None
        handle, result, there = self._process.stdout.fileno(), bytearray(size), 0
        try:
            while there < size:
                started = time.monotonic()
                ready = select.select([handle], [], [], max(0.0, left))[0]
                left -= time.monotonic() - started
                if not ready:
                    raise LimitExceeded("time")
                number = os.readv(handle, [memoryview(result)[there:]])
                if not number:
                    raise self._ended()
                there += number
        except BaseException:
            self.close()
            raise
        return result, left

    def _ended(self) -> Exception:
        """Why the child ended, as an error."""
        process = self._process
        assert process is not None
        status: int | None = None
        with suppress(subprocess.TimeoutExpired):
            status = process.wait(timeout=10)
        self.close()
        if status in (-signal.SIGKILL, LIMITED_FROM_OUTSIDE):
            # Nothing that it was given can do that: its own limits are lower, or end it otherwise.
            why = "a limit of address space ended" if status == LIMITED_FROM_OUTSIDE else (
                "the system killed, as it does when memory is short,"
            )  # fmt: skip
            return OutOfMemory(f"{why} the process that reads untrusted files")
        if status is None:
            status = -signal.SIGKILL
        if status in (-signal.SIGPROF, NO_MEMORY):
            return LimitExceeded("memory" if status == NO_MEMORY else "time")
        name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return ProcessEnded(
            f"the limited process ended ({name})",
            next_step="look at what it was given: a file may be damaged, or need more memory",
        )


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    """End a child and its own children, in the process that started it."""
    if owner != os.getpid():
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):  # what was not sent any more
                stream.close()


def _arrow(body: bytearray) -> Iterator[Any]:
    """The batches of a piece; its schema where it has none."""
    import pyarrow as pa

    with pa.ipc.open_stream(body) as reader:
        batches = list(reader)
        yield from batches or [reader.schema]


def _error(content: dict[str, Any]) -> Exception:
    kinds = [RouteyardError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    for kind in kinds:
        if kind.__name__ == content.get("kind"):
            error = kind.__new__(kind)
            RouteyardError.__init__(
                error,
                str(content.get("what")),
                where=content.get("where"),
                next_step=content.get("next_step"),
            )
            return error
    return FunctionFailed(f"{content.get('kind')}: {content.get('what')}")
