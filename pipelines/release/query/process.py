"""SQL over a release: read-only, answered in a process with limits of time and memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from routeyard.pipelines.errors import BadInput, SourceError
from routeyard.pipelines.isolation import (
    FunctionFailed,
    LimitExceeded,
    Limits,
    ProcessEnded,
    Worker,
)
from routeyard.pipelines.release.query import sql as in_child
from routeyard.pipelines.release.query.errors import QueryLimit, too_much

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
#: What Arrow and DuckDB need beside the memory of a query, in bytes.
_OVERHEAD = 512 << 20
#: The longest time-out, in seconds: a year.
_LONGEST = 366 * 86400.0


def query_release(
    release: Path, sql: str, *, timeout_s: float = 60.0, memory_limit: str = "4GB"
) -> pa.Table:
    """Answer of one SQL statement as an Arrow table.

    It is found in a separate process, whose address space is limited and which is
    ended when the time is up; neither a single expression nor a large answer passes.

    Raises:
        QueryError: the SQL is wrong.
        Unsafe: it would write, or read a file outside the release.
        QueryLimit: time or memory ran out.
        SourceError: there is no release, or it is damaged.
    """
    with closing(SqlProcess(release, memory_limit=memory_limit)) as process:
        return process.table(sql, timeout_s=timeout_s)


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
    """SQL over one release, answered in a limited process.

    A time-out ends the process, and the next query starts another: an expression that
    looks at no clock is stopped as well. Memory is limited there by the address space,
    here by the bytes of the answer.
    """

    def __init__(self, release: Path, *, memory_limit: str = "4GB") -> None:
        self._memory, self._most = memory_limit, in_bytes(memory_limit)
        limits = Limits(self._most + _OVERHEAD, _LONGEST, answer=self._most)
        self._worker = Worker(limits, in_child.open_release, str(release.resolve()), memory_limit)
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
        if not 0 < timeout_s <= _LONGEST:
            raise BadInput(
                f"{timeout_s:g} s is no time-out",
                next_step=f"give more than 0 and at most {_LONGEST:g}",
            )
        pieces = self._pieces(sql, timeout_s)
        return next(pieces), pieces

    def close(self) -> None:
        """End the process; a later query starts another."""
        self._worker.close()

    def _pieces(self, sql: str, timeout_s: float) -> Iterator[Any]:
        limits = Limits(self._most + _OVERHEAD, timeout_s, answer=self._most)
        with (
            _our_limits(timeout_s),
            closing(self._worker.stream(in_child.answer, sql, limits=limits)) as stream,
        ):
            for piece in stream:
                if isinstance(piece, dict):
                    self.spent = piece
                else:
                    yield piece


@contextmanager
def _our_limits(timeout_s: float) -> Iterator[None]:
    """The limited process's errors as those of a query."""
    try:
        yield
    except LimitExceeded as error:
        if error.limit == "memory":
            raise too_much() from error
        raise QueryLimit(
            f"the query took longer than {timeout_s:g} s",
            next_step="narrow it with WHERE, or raise --timeout",
        ) from error
    except ProcessEnded as error:  # memory that nobody could refuse politely ends it
        raise QueryLimit(
            "the process that answers queries ended, most likely for want of memory",
            next_step="narrow the query, or raise --memory",
        ) from error
    except FunctionFailed as error:
        raise SourceError(str(error), next_step="narrow the query") from error
