"""The ledger in PostgreSQL, for workers on several hosts.

Writers queue on one advisory lock per transaction, so that attempt ids are
committed in order: a plan that remembers the newest id sees everything before
it. Group commits keep the queue short.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from routeyard.pipelines.collect.ledger import COLUMNS, Attempt, Dialect, Execute, Ledger
from routeyard.pipelines.common.errors import DiskFull
from routeyard.schemas.errors import BadInput, RouteyardError

if TYPE_CHECKING:
    import psycopg

#: Any fixed number: the one lock that all writers of ledgers in a database take.
_LOCK = 0x526F757465  # "Route"
# What a server sent is kept as bytes: PostgreSQL text refuses NUL, which models do write.
_BYTES = (
    "error", "text", "finish_reason", "served_model", "provider", "system_fingerprint", "logprobs",
)  # fmt: skip
_INTEGERS = (
    "sample", "http_status", "choices", "prompt_tokens", "completion_tokens", "reasoning_tokens",
    "total_tokens", "call_completion_tokens", "cache_read_tokens", "cache_write_tokens",
)  # fmt: skip
_NOW = "extract(epoch FROM clock_timestamp())::float8"
_DIALECT = Dialect(
    attempt_id="bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    default_type="text",
    clock=_NOW,
    beat=_NOW,
    silence=f"{_NOW} - seen",
    types={
        **dict.fromkeys(_INTEGERS, "bigint"),
        **dict.fromkeys(("cost_usd", "latency_s", "ttft_s"), "double precision"),
        **dict.fromkeys(_BYTES, "bytea"),
        "permanent": "boolean",
    },
)


class PostgresLedger(Ledger):
    """`Ledger` in a PostgreSQL database that many workers share.

    Args:
        url: `postgresql://…`, read from the environment by the caller and never printed.

    Raises:
        BadInput: psycopg is not installed, or the database cannot be used.
        DiskFull: the server's disk filled up; what was acknowledged is kept.
    """

    _dialect = _DIALECT

    def __init__(self, url: str) -> None:
        self._psycopg = _driver()
        self._url = url
        self._writer = connect(url)
        self._reader = connect(url)
        self._reading = threading.Lock()
        self._transact(lambda _: self._writer.execute(_DIALECT.schema.encode()))
        super().__init__()

    def __repr__(self) -> str:
        # The address holds a password.
        return f"PostgresLedger({_place(self._url)})"

    def _read(self, sql: str, values: Sequence[Any] = ()) -> list[Sequence[Any]]:
        try:
            with self._reading, self._reader.transaction():
                return list(self._reader.execute(_marked(sql), values).fetchall())
        except self._psycopg.Error as error:
            raise _named(error, self._url) from error

    def _transact(self, work: Callable[[Execute], Any]) -> Any:
        try:
            with self._writer.transaction():
                self._writer.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                return work(self._execute)
        except self._psycopg.Error as error:
            raise _named(error, self._url) from error

    def _execute(self, sql: str, values: Sequence[Any]) -> list[Sequence[Any]]:
        cursor = self._writer.execute(_marked(sql), values)
        return list(cursor.fetchall()) if cursor.description else []

    def _insert(self, attempts: Sequence[Attempt]) -> None:
        with (
            self._writer.cursor() as cursor,
            cursor.copy(f"COPY attempts ({_DIALECT.attempt_columns}) FROM STDIN".encode()) as copy,
        ):
            for attempt in attempts:
                copy.write_row(_row(attempt))

    def _many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._writer.cursor() as cursor:
            cursor.executemany(_marked(sql), rows)

    def _disconnect(self) -> None:
        self._writer.close()
        self._reader.close()

    def _attempt(self, row: Sequence[Any]) -> Attempt:
        values = dict(zip(COLUMNS, row, strict=True))
        for name in _BYTES:
            if values[name] is not None:
                values[name] = bytes(values[name]).decode("utf-8", "surrogatepass")
        return Attempt(**values)


def _marked(sql: str) -> bytes:
    """The statement with this driver's marks for values."""
    return sql.replace("?", "%s").encode()


def connect(url: str) -> psycopg.Connection[Any]:
    """A connection in autocommit mode; faults are named without the address's password.

    Raises:
        BadInput: psycopg is not installed, or the database cannot be reached.
    """
    driver = _driver()
    try:
        return driver.connect(url, autocommit=True, connect_timeout=15)
    except driver.Error as error:
        raise _named(error, url) from None


def _named(error: BaseException, url: str) -> RouteyardError:
    place = _place(url)
    if isinstance(error, _driver().errors.DiskFull):
        return DiskFull(
            "the disk of the database is full: the ledger takes no more answers",
            where=place,
            next_step="free some space and run the same command; acknowledged answers are kept",
        )
    said = " ".join(str(error).split()).replace(url, place)
    return BadInput(
        f"the ledger cannot be used: {said}",
        where=place,
        next_step="check that PostgreSQL runs and ROUTEYARD_LEDGER names its database",
    )


def _place(url: str) -> str:
    """Where the ledger is, without user and password."""
    try:
        known = _driver().conninfo.conninfo_to_dict(url)
    except _driver().Error:
        return "postgresql"
    return f"postgresql {known.get('host', 'local socket')}/{known.get('dbname', '')}"


def _driver() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise BadInput(
            "a PostgreSQL ledger needs the driver psycopg",
            next_step="pip install -c constraints.txt '.[postgres]'",
        ) from error
    return psycopg


def _row(attempt: Attempt) -> list[Any]:
    values = {name: getattr(attempt, name) for name in COLUMNS}
    for name in _BYTES:
        if values[name] is not None:
            values[name] = str(values[name]).encode("utf-8", "surrogatepass")
    return [values[name] for name in COLUMNS]


# Slots of a shared ledger: how many collectors may send requests at once.

#: First half of the advisory lock's key; the second is the slot's number.
_SLOTS = 0x53656174


@contextmanager
def take_slot(url: str, slots: int) -> Iterator[int]:
    """One of `slots` slots, given back on leaving or when the process dies.

    Raises:
        BadInput: all slots are taken, or the database cannot be used.
    """
    with connect(url) as connection:
        for number in range(slots):
            row = connection.execute(
                "SELECT pg_try_advisory_lock(%s, %s)", (_SLOTS, number)
            ).fetchone()
            if row is not None and row[0]:
                # The lock lives as long as the connection.
                yield number
                return
    raise BadInput(
        f"all {slots} collectors are at work already: one more would exceed the limits",
        where="the shared ledger",
        next_step="wait for one to end, or set ROUTEYARD_COLLECTORS to more for all of them",
    )
