"""Asks the process that answers SQL, and ends it when a limit is passed."""

from __future__ import annotations

import json
import os
import re
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from pipelines.errors import BadInput, RouteyardError, SourceError, Unsafe

_HEADER = struct.Struct(">cQ")
#: Longest wait for the process to open the release, in seconds.
_START_S = 120.0
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


class QueryError(BadInput):
    """SQL that DuckDB does not accept."""


class QueryLimit(RouteyardError):
    """A query ran into its limit of time or memory."""


def in_bytes(memory: str) -> int:
    """`4GB`, `500 MB`, `2GiB` in bytes.

    Raises:
        BadInput: it is no amount of memory.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", memory, re.IGNORECASE)
    if found is None or not float(found[1]):
        raise BadInput(f"{memory!r} is no amount of memory", next_step="write it like 4GB or 500MB")
    unit = found[2].upper()
    scale = 1024 ** "_KMGT".index(unit) if found[3] and unit else _UNITS[unit]
    return int(float(found[1]) * scale)


class SqlProcess:
    """SQL over one release, answered in a process with a limit of its own.

    A time-out ends the process, and the next query starts another: an expression that
    looks at no clock is stopped as well. Memory is limited there by the address space,
    here by the bytes of the answer.
    """

    def __init__(self, release: Path, *, memory_limit: str = "4GB") -> None:
        self._release, self._memory = release.resolve(), memory_limit
        self._most = in_bytes(memory_limit)
        self._process: subprocess.Popen[bytes] | None = None
        #: `cpu_s` and `peak_mb` of the process up to its last answer.
        self.spent: dict[str, float] = {}

    def table(self, sql: str, *, timeout_s: float) -> pa.Table:
        """The whole answer; `QueryLimit` when it is larger than the memory limit."""
        schema, batches = self.stream(sql, timeout_s=timeout_s)
        held, kept = 0, []
        for batch in batches:
            held += batch.nbytes
            kept.append(batch)
            if held > self._most:
                self.close()
                raise QueryLimit(
                    f"the answer is larger than {self._memory}",
                    next_step="narrow it, raise --memory, or write it to a file with --out",
                )
        return pa.Table.from_batches(kept, schema=schema)

    def stream(self, sql: str, *, timeout_s: float) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Columns of the answer, and its rows in pieces as they are found.

        The time runs while the query works, not while the reader does.

        Raises:
            QueryError: the SQL is wrong.
            Unsafe: it would write, or read a file outside the release.
            QueryLimit: time or memory ran out.
        """
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({"sql": sql}).encode() + b"\n")
            process.stdin.flush()
        except OSError as error:
            self.close()
            raise _gone() from error
        clock = _Clock(timeout_s)
        kind, body = self._frame(clock)
        if kind != b"S":
            raise self._unexpected(kind)
        with pa.ipc.open_stream(body) as reader:
            schema = reader.schema
        return schema, self._batches(clock)

    def _batches(self, clock: _Clock) -> Iterator[pa.RecordBatch]:
        done = False
        try:
            while True:
                kind, body = self._frame(clock)
                if kind == b"D":
                    done = True
                    self.spent = json.loads(body)
                    return
                if kind != b"B":
                    raise self._unexpected(kind)
                with pa.ipc.open_stream(body) as reader:
                    yield from reader
        except RouteyardError:
            done = True
            raise
        finally:
            if not done:  # left in the middle: the rest of the answer would be the next one's
                self.close()

    def close(self) -> None:
        """End the process; a later query starts another."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                _shut(stream)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        words = [sys.executable, "-m", "pipelines.release.query.worker"]
        words += [str(self._release), self._memory, str(self._most)]
        environment = {
            "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
            "MALLOC_ARENA_MAX": "2",  # each arena reserves address space
            "LC_ALL": "C.UTF-8",
            "PATH": os.environ.get("PATH", ""),
        }
        self._process = subprocess.Popen(  # noqa: S603  this interpreter, a module of ours
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            start_new_session=True,  # Ctrl-C is ours to handle
        )
        try:
            kind, _ = self._frame(_Clock(_START_S))
        except RouteyardError:
            self.close()
            raise
        if kind != b"R":
            raise self._unexpected(kind)
        return self._process

    def _frame(self, clock: _Clock) -> tuple[bytes, bytes]:
        kind, size = _HEADER.unpack(self._read(_HEADER.size, clock))
        if size > self._most:
            self.close()
            raise too_much()
        body = self._read(size, clock)
        if kind == b"E":
            raise _told(json.loads(body), self._release)
        return kind, body

    def _read(self, size: int, clock: _Clock) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        handle, parts = self._process.stdout.fileno(), bytearray()
        try:
            while len(parts) < size:
                started = time.monotonic()
                ready, _, _ = select.select([handle], [], [], clock.left())
                clock.spent += time.monotonic() - started
                if not ready:
                    raise QueryLimit(
                        f"the query took longer than {clock.limit:g} s",
                        next_step="narrow it with WHERE, or raise --timeout",
                    )
                part = os.read(handle, min(size - len(parts), 1 << 20))
                if not part:
                    raise _gone()
                parts += part
        except BaseException:
            self.close()
            raise
        return bytes(parts)

    def _unexpected(self, kind: bytes) -> RouteyardError:
        self.close()
        return SourceError(f"the process that answers queries sent {kind!r}")


#: The longest time-out, in seconds: a year.
_LONGEST = 366 * 86400.0


class _Clock:
    """Time that a query has left; it stands still while nobody waits for it."""

    def __init__(self, limit: float) -> None:
        if not 0 < limit <= _LONGEST:
            raise BadInput(
                f"{limit:g} s is no time-out",
                next_step=f"give more than 0 and at most {_LONGEST:g}",
            )
        self.limit, self.spent = limit, 0.0

    def left(self) -> float:
        return max(0.0, self.limit - self.spent)


def too_much() -> QueryLimit:
    """The error of a query that needs more memory than it may use."""
    return QueryLimit(
        "the query needs more memory than it may use", next_step="narrow it, or raise --memory"
    )


def _gone() -> QueryLimit:
    # Memory that nobody could refuse politely ends the process.
    return QueryLimit(
        "the process that answers queries ended, most likely for want of memory",
        next_step="narrow the query, or raise --memory",
    )


def _told(said: dict[str, Any], release: Path) -> Exception:
    kinds: dict[str, type[RouteyardError]] = {
        kind.__name__: kind for kind in (QueryError, QueryLimit, Unsafe, SourceError, BadInput)
    }
    kind = kinds.get(str(said.get("kind")), SourceError)
    return kind(str(said.get("what")), where=said.get("where"), next_step=said.get("next_step"))


def _shut(stream: IO[bytes]) -> None:
    try:
        stream.close()
    except OSError:  # what was not sent any more
        return
