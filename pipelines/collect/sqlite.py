"""The ledger as one SQLite file: WAL, synchronous=FULL, group commits.

On a network file system the journal is a rollback journal: WAL needs memory that all processes
share, which two hosts do not have.

One thread owns the writing connection, so that durability costs a few
microseconds per call instead of a disk flush each. Readers use connections of
their own and never wait for it.

SQLite does not see that a bit of its file has changed. Each attempt therefore has a
checksum, and one that does not match is an error: a damaged answer is never released.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar

from routeyard.pipelines.collect.ledger import (
    COLUMNS,
    AnswerKey,
    Attempt,
    Claim,
    Dialect,
    Execute,
    Ledger,
)
from routeyard.pipelines.common.errors import DiskFull
from routeyard.pipelines.common.machine import is_network
from routeyard.pipelines.common.staging import is_full
from routeyard.schemas.errors import BadInput, RouteyardError

# Checksums of attempts: SQLite does not see that a bit of its file has changed.


def checksum_of(values: Sequence[Any]) -> int:
    """CRC-32 of an attempt as SQLite gives it back: true is 1, and NaN is null."""
    return zlib.crc32(repr([_plain(value) for value in values]).encode("utf-8", "surrogatepass"))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    return int(value) if isinstance(value, int) else value


# Disk space that is held until the disk is full, for answers that are paid for by then.


class Reserve:
    """A file beside the ledger whose space the ledger takes when there is no other.

    Processes that share a ledger share it.
    """

    #: What calls in flight bring, generously: 256 answers of 30 KB.
    BYTES: ClassVar[int] = 8 << 20

    def __init__(self, ledger: Path) -> None:
        self.path = ledger.with_name(f"{ledger.name}-reserve")

    def hold(self) -> None:
        """Hold the space.

        Raises:
            OSError: there is not so much, or the file system can hold none.
        """
        if self.path.is_file() and self.path.stat().st_size >= self.BYTES:
            return
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            _allocate(file, self.BYTES)
        except OSError:
            self.free()
            raise
        finally:
            os.close(file)

    def free(self) -> bool:
        """Give the space to whoever writes next; whether there was any."""
        try:
            self.path.unlink()
        except OSError:
            return False
        return True


def _allocate(file: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    part = bytes(1 << 20)
    for start in range(0, size, len(part)):
        os.write(file, part[: size - start])


_DIALECT = Dialect(
    attempt_id="INTEGER PRIMARY KEY",
    default_type="",
    clock="0",
    beat="seen + 1",
    silence="NULL",
    checksum="checksum",
    table_options="WITHOUT ROWID",
)
#: Seconds for which another process may hold the file.
_PATIENCE_S = 60
#: What SQLite says of a quota, and of a limit on the size of a file: not that the disk is full.
_UNWRITTEN = (
    sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_DIR_FSYNC, sqlite3.SQLITE_IOERR_CLOSE,
)  # fmt: skip
#: What SQLite raises; its message about a damaged table quotes it, which may be no UTF-8.
_FAULTS = (sqlite3.Error, OSError, UnicodeDecodeError)
_INSERT = (
    f"INSERT INTO attempts ({_DIALECT.attempt_columns}) VALUES "
    f"({', '.join('?' * (len(COLUMNS) + 1))})"
)


class SqliteLedger(Ledger):
    """`Ledger` in one file that several processes may share.

    Args:
        path: The file; its folder is made.

    Raises:
        BadInput: the file is not a ledger.
        DiskFull: the disk filled up; what was acknowledged is kept.

    Once the disk is full, a quota used up or the largest size of a file near, nothing more is
    claimed, and answers to what is in flight take the space of the `Reserve`.
    """

    _dialect = _DIALECT
    _reserve: Reserve | None = None
    _full: DiskFull | None = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self._readers = threading.local()
        self._opened: list[sqlite3.Connection] = []
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _one_name(path)
            self._writer = _begun(path)
        except _FAULTS as error:
            raise _named(error, path) from error
        super().__init__()

    def _read(self, sql: str, values: Sequence[Any] = ()) -> list[Sequence[Any]]:
        try:
            return self._reader().execute(sql, values).fetchall()
        except _FAULTS as error:
            raise _named(error, self.path) from error

    def _reader(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._readers, "connection", None)
        if connection is None:
            connection = _connect(self.path)
            connection.execute("PRAGMA query_only = ON")
            self._readers.connection = connection
            self._opened.append(connection)
        return connection

    def claim(self, keys: Sequence[AnswerKey], *, after: int) -> Future[Claim]:
        """As `Ledger.claim`; refused where the disk has no space for answers."""
        try:
            self._make_room()
        except DiskFull as fault:
            refused: Future[Claim] = Future()
            refused.set_exception(fault)
            return refused
        return super().claim(keys, after=after)

    def holds(self, keys: Sequence[AnswerKey]) -> bool:
        """As `Ledger.holds`; nothing is sent once the disk is full.

        Where another process has taken the reserve, a claim looks for space first.
        """
        room = self._full is None and (self._reserve is None or self._reserve.path.exists())
        return room and super().holds(keys)

    def _make_room(self) -> None:
        self._watch_size()
        if self._full is not None:
            raise self._full
        self._reserve = self._reserve or Reserve(self.path)
        try:
            self._reserve.hold()
        except OSError as error:
            if isinstance(fault := _named(error, self.path), DiskFull):
                raise fault from error
            self._reserve = None  # the file system can hold none

    def _watch_size(self) -> None:
        """Stop while answers in flight still fit into the largest file that we may write."""
        most = _largest_file()
        if self._full is None and most is not None:
            # Checkpoints move the log into the file: in the end both are in it.
            files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
            taken = sum(file.stat().st_size for file in files if file.exists())
            if taken + Reserve.BYTES > most:
                self._full = _no_space(self.path)

    def _transact(self, work: Callable[[Execute], Any]) -> Any:
        """Do work in a transaction, in the reserved space where there is no other."""
        while True:
            try:
                done = self._transact_once(work)
                self._watch_size()
                return done
            except DiskFull as fault:
                self._full = self._full or fault
                if self._reserve is None or not self._reserve.free():
                    raise

    def _transact_once(self, work: Callable[[Execute], Any]) -> Any:
        """BEGIN IMMEDIATE … COMMIT, so that two processes queue up instead of failing."""
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                result = work(self._execute)
                self._writer.execute("COMMIT")
            finally:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
        except _FAULTS as error:
            raise _named(error, self.path) from error
        return result

    def _execute(self, sql: str, values: Sequence[Any]) -> list[Sequence[Any]]:
        return self._writer.execute(sql, values).fetchall()

    def _insert(self, attempts: Sequence[Attempt]) -> None:
        rows = [tuple(getattr(attempt, name) for name in COLUMNS) for attempt in attempts]
        self._writer.executemany(_INSERT, [(*row, checksum_of(row)) for row in rows])

    def _attempt(self, row: Sequence[Any]) -> Attempt:
        *values, checksum = row
        # A row whose columns a flipped bit has moved has none.
        if checksum != checksum_of(values):
            raise BadInput(
                f"an attempt in the ledger is damaged: it does not match its checksum (model "
                f"{str(values[COLUMNS.index('model_id')])[:80]!r}, request "
                f"{str(values[COLUMNS.index('request_hash')])[:80]!r})",
                where=str(self.path),
                next_step="restore the file from a copy; or delete that row of `attempts` and run "
                "the same command: only what is missing is asked again",
            )
        return super()._attempt(values)

    def _many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._writer.executemany(sql, rows)

    def _disconnect(self) -> None:
        for connection in (*self._opened, self._writer):
            connection.close()
        if self._reserve is not None:
            self._reserve.free()


def _one_name(path: Path) -> None:
    """Stop at a file with a second name: SQLite keeps a log beside each, and loses what is in one.

    Raises:
        BadInput: it is a hard link, as `cp -al` and some backups make them.
    """
    if path.exists() and path.stat().st_nlink > 1:
        raise BadInput(
            "the ledger's file has a second name (a hard link): used by both, answers are lost",
            where=str(path),
            next_step=f"make it a separate file: cp {path.name} own && mv own {path.name}",
        )


def _begun(path: Path) -> sqlite3.Connection:
    """The writing connection, with its tables.

    SQLite does not wait where two begin one file at once: who changes it to WAL gets an error
    that it is locked.
    """
    until = time.monotonic() + _PATIENCE_S
    while True:
        connection = _connect(path)
        try:
            _set_journal(connection, path)
            connection.executescript(_DIALECT.schema)
            connection.execute("PRAGMA synchronous = FULL")
            return connection
        except (BadInput, UnicodeDecodeError):
            connection.close()
            raise
        except sqlite3.Error as error:
            connection.close()
            code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
            if code != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(0.05)


def _set_journal(connection: sqlite3.Connection, path: Path) -> None:
    """Choose the journal that is safe on the file's file system.

    Raises:
        BadInput: another process, perhaps of another host, has the file open with the other one.
    """
    if not is_network(path.parent):
        connection.execute("PRAGMA journal_mode = WAL")
        return
    with contextlib.suppress(sqlite3.OperationalError):  # who has it open keeps it as it is
        connection.execute("PRAGMA journal_mode = DELETE")
    if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
        raise BadInput(
            "the ledger is on a network file system and another process has it open with a journal "
            "that hosts cannot share (WAL): answers could be lost",
            where=str(path),
            next_step="end the other process that has it open and run this again; for workers on "
            "several hosts use PostgreSQL (ROUTEYARD_LEDGER)",
        )


def _connect(path: Path) -> sqlite3.Connection:
    # Each connection is used by one thread at a time; only closing is done by another.
    connection = sqlite3.connect(
        path, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False
    )
    connection.execute(f"PRAGMA busy_timeout = {1000 * _PATIENCE_S}")
    return connection


def _named(error: sqlite3.Error | OSError | UnicodeDecodeError, path: Path) -> RouteyardError:
    # The low byte of an extended code says its kind.
    code = getattr(error, "sqlite_errorcode", None) or 0
    if is_full(error) or code & 0xFF == sqlite3.SQLITE_FULL:
        why = error.strerror if isinstance(error, OSError) else error
        return _no_space(path, f"the disk is full ({why})")
    if code in _UNWRITTEN:
        return _no_space(path, f"the disk is full, a quota is used up, or it fails ({error})")
    if any(name.exists() and not os.access(name, os.W_OK) for name in (path.parent, path)):
        return BadInput(
            f"the ledger cannot be written: file or folder is read-only for you ({error})",
            where=str(path),
            next_step="give a folder that you may write to: --workspace FOLDER",
        )
    damaged = isinstance(error, UnicodeDecodeError)
    return BadInput(
        f"the ledger cannot be used: {'its tables are damaged' if damaged else error}",
        where=str(path),
        next_step="check that the file is a ledger of this workspace and can be written",
    )


def _largest_file() -> int | None:
    """Most bytes that this process may write to one file; null without a limit."""
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return None if most == resource.RLIM_INFINITY else most


def _no_space(path: Path, said: str = "") -> DiskFull:
    if (most := _largest_file()) is not None:
        said = (
            f"this process may write files of {most / 1e6:,.1f} MB at most (`ulimit -f`), and "
            f"{Reserve.BYTES / 1e6:,.1f} MB have to be left for answers in flight"
        )
    return DiskFull(
        f"{said}: the ledger takes no more answers",
        where=str(path),
        next_step="free some space, or raise the quota or limit (`df`, `quota`, `ulimit -f`), and "
        "run the same command; acknowledged answers are kept",
    )
