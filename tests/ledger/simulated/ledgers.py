"""The real ledgers on one connection that simulated processes share, with the world's clocks.

SQLite is itself. PostgreSQL is a model of it, SQLite with a server's clock; `RealPostgres` is the
real one, whose `clock_timestamp()` is the world's.
"""

from __future__ import annotations

import dataclasses
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeyard.pipelines.collect.ledger import (
    Appended,
    Clocks,
    Dialect,
    Execute,
    GroupCommit,
    HeldLease,
    Lease,
    Ledger,
)
from routeyard.pipelines.collect.postgres import PostgresLedger, connect
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.errors import BadInput

if TYPE_CHECKING:
    from tests.ledger.simulated.world import Process, World

TABLES = ("attempts", "notes", "owners", "claims", "charges")


class Crashed(BaseException):
    """A killed process reached for its ledger: only what Python tidies up does."""


class ProcessClocks(Clocks):
    def __init__(self, process: Process) -> None:
        self._process = process

    def monotonic(self) -> float:
        return self._process.monotonic()

    def own(self) -> float:
        return self._process.own()


class LoopCommit(GroupCommit):
    """Group commits as callbacks of the process's loop, each a moment after it was asked for."""

    process: Process

    def _begin(self) -> None:
        self._due = False

    def attach(self, process: Process) -> None:
        self.process = process
        self._beat()

    def append(self, item: Appended) -> None:
        super().append(item)
        self._soon()

    def submit(self, work: Callable[[Any], Any]) -> Future[Any]:
        future = super().submit(work)
        if self.process.loop.in_executor:
            self.work(0)
        else:
            self._soon()
        return future

    def stop(self) -> None:
        self.work(0)

    def _soon(self) -> None:
        if not self._due:
            self._due = True
            delay = self.process.world.chance.expovariate(1 / 0.02)
            self.process.loop.call_later(delay, self._write)

    def _write(self) -> None:
        self._due = False
        self.work(0)

    def _beat(self) -> None:
        self.work(0)
        self.process.loop.call_later(self._idle_seconds, self._beat)


class _SimulatedLease(HeldLease):
    """The lease of a process whose id and namespace are the world's."""

    def __init__(self, dialect: Dialect, clocks: Clocks, process: Process) -> None:
        self._process = process
        super().__init__(dialect, clocks)

    def new(self) -> Lease:
        process = self._process
        process.leases += 1
        return Lease(f"{process.name}.{process.leases}", process.space, process.pid, "0")

    def process_ended(self, host: str | None, pid: int | None, began: str | None) -> bool:
        process = self._process
        return host == process.space and pid not in process.world.living(process.space)


class _Simulated(Ledger):
    """What all simulated ledgers share: whose they are, and the faults of their database."""

    _group_commit = LoopCommit
    process: Process

    def _of(self, process: Process) -> None:
        self.process = process
        self._clocks = ProcessClocks(process)
        Ledger.__init__(self)
        self._group.attach(process)

    def _new_lease(self) -> HeldLease:
        return _SimulatedLease(self._dialect, self._clocks, self.process)

    def _transact(self, work: Callable[[Execute], Any]) -> Any:
        if self.process.crashed:
            raise Crashed
        lost = self.process.world.database_fault(self.process)
        if lost == "before":
            raise BadInput("the database did not answer (simulated)")
        result = super()._transact(work)
        if lost == "after":
            raise BadInput("the database did its work, and its answer was lost (simulated)")
        return result


class SimulatedSqlite(_Simulated, SqliteLedger):
    def __init__(self, process: Process) -> None:
        self.path, self._checked = Path("simulated"), True
        self._writer = process.world.database.connection
        self._opened = []
        self._of(process)

    def _reader(self) -> sqlite3.Connection:
        return self._writer

    def _make_room(self) -> None:
        """There is no disk."""

    def _disconnect(self) -> None:
        pass


class ModelOfPostgres(SimulatedSqlite):
    _dialect = dataclasses.replace(
        SqliteLedger._dialect,
        clock="clock_timestamp()",
        beat="clock_timestamp()",
        silence="clock_timestamp() - seen",
    )


class SqliteDatabase:
    """One database in memory, emptied for each schedule."""

    def __init__(self, ledger: type[SimulatedSqlite]) -> None:
        self.ledger = ledger
        self.now: Callable[[], float] = lambda: 0.0
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.executescript(ledger._dialect.schema)
        self.connection.create_function("clock_timestamp", 0, lambda: self.now())

    def begin(self, world: World) -> None:
        self.now = world.server_clock
        for table in TABLES:
            self.connection.execute(f"DELETE FROM {table}")


class RealPostgres(_Simulated, PostgresLedger):
    def __init__(self, process: Process) -> None:
        database = process.world.database
        self._psycopg, self._url = database.driver, database.url
        self._writer = database.writer
        self._reader, self._reading = database.writer, threading.Lock()
        self._of(process)

    def _transact(self, work: Callable[[Execute], Any]) -> Any:
        now = self.process.world.server_clock()
        self._writer.execute("SELECT set_config('simulated.now', %s, false)", (repr(now),))
        return super()._transact(work)

    def _disconnect(self) -> None:
        pass


class PostgresDatabase:
    """A database of a real server, emptied for each schedule; its clock is the world's."""

    ledger = RealPostgres

    def __init__(self, url: str) -> None:
        import psycopg

        self.driver, self.url = psycopg, url
        self.writer = connect(url)
        statements: Sequence[str] = (
            "CREATE SCHEMA IF NOT EXISTS simulated",
            "CREATE OR REPLACE FUNCTION simulated.clock_timestamp() RETURNS timestamptz "
            "LANGUAGE sql AS $$ SELECT to_timestamp(current_setting('simulated.now')::float8) $$",
            "SET search_path = simulated, pg_catalog, public",
            "SET synchronous_commit = off",
            PostgresLedger._dialect.schema,
        )
        for statement in statements:
            self.writer.execute(statement.encode())

    def begin(self, world: World) -> None:
        self.writer.execute(f"TRUNCATE {', '.join(TABLES)} RESTART IDENTITY".encode())

    def __enter__(self) -> PostgresDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self.writer.close()
