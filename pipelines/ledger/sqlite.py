"""The ledger as one SQLite file: WAL, synchronous=FULL, group commits.

One thread owns the writing connection. It commits when 64 attempts wait or
50 ms have passed since the first of them, so that durability costs a few
microseconds per call instead of a disk flush each. Readers use connections of
their own and never wait for it.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from pipelines.errors import BadInput, DiskFull, RouteyardError
from pipelines.ledger.attempt import COLUMNS, Attempt
from pipelines.ledger.ledger import SUMMARY, Acknowledge, Answered, Claim, Key, Settled, standing
from pipelines.ledger.owner import Owner

#: Hashes per SELECT; SQLite's own limit on parameters is higher everywhere.
_LOOKUP = 500

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS attempts (
    id INTEGER PRIMARY KEY,
    {", ".join(COLUMNS)}
);
CREATE INDEX IF NOT EXISTS attempts_by_request ON attempts (request_hash, sample);
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, json TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS owners (
    owner TEXT PRIMARY KEY, host TEXT, pid INTEGER, started TEXT, seen REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS claims (
    request_hash TEXT NOT NULL, sample INTEGER NOT NULL, owner TEXT NOT NULL,
    PRIMARY KEY (request_hash, sample)
) WITHOUT ROWID;
PRAGMA user_version = 1;
"""
_INSERT = f"INSERT INTO attempts ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
_UNCLAIM = "DELETE FROM claims WHERE request_hash = ? AND sample = ? AND owner = ?"


class SqliteLedger:
    """`Ledger` in one file that several processes may share.

    Args:
        path: The file; its folder is made.
        group_rows: Attempts that make a commit due.
        group_seconds: Longest an attempt waits for its commit.

    Raises:
        BadInput: the file is not a ledger.
        DiskFull: the disk filled up; what was acknowledged is kept.
    """

    def __init__(self, path: Path, *, group_rows: int = 64, group_seconds: float = 0.05) -> None:
        self.path = path
        self._group_rows = group_rows
        self._group_seconds = group_seconds
        self._queue: queue.SimpleQueue[_Append | _Task | None] = queue.SimpleQueue()
        self._owner = Owner.this_process()
        self._registered = False
        self._failed: BaseException | None = None
        self._closed = False
        path.parent.mkdir(parents=True, exist_ok=True)
        self._readers = threading.local()
        self._opened: list[sqlite3.Connection] = []
        try:
            connection = _connect(path)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(_SCHEMA)
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise _named(error, path) from error
        self._thread = threading.Thread(target=self._write, name="ledger", daemon=True)
        self._thread.start()

    def __enter__(self) -> SqliteLedger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- reading ---------------------------------------------------------------

    def position(self) -> int:
        row = self._reader().execute("SELECT coalesce(max(id), 0) FROM attempts").fetchone()
        return int(row[0])

    def settled(self, hashes: Sequence[str]) -> dict[Key, Settled]:
        return {key: found for key, (found, _) in self._standing(hashes).items()}

    def answered(self, hashes: Sequence[str]) -> dict[Key, Answered]:
        found = self._standing(hashes)
        by_id: dict[int, tuple[Key, int]] = {
            row.attempt_id: (key, count) for key, (row, count) in found.items()
        }
        answers: dict[Key, Answered] = {}
        ids = sorted(by_id)
        for start in range(0, len(ids), _LOOKUP):
            chunk = ids[start : start + _LOOKUP]
            rows = self._reader().execute(
                f"SELECT id, {', '.join(COLUMNS)} FROM attempts "
                f"WHERE id IN ({', '.join('?' * len(chunk))})",
                chunk,
            )
            for row in rows:
                key, count = by_id[row[0]]
                answers[key] = Answered(_attempt(row[1:]), count)
        return answers

    def attempts(self, *, after: int = 0, purpose: str | None = None) -> Iterator[Attempt]:
        rows = self._reader().execute(
            f"SELECT {', '.join(COLUMNS)} FROM attempts "
            "WHERE id > ?1 AND (?2 IS NULL OR purpose = ?2) ORDER BY id",
            (after, purpose),
        )
        for row in rows:
            yield _attempt(row)

    def recall(self, prefix: str) -> dict[str, str]:
        rows = self._reader().execute(
            "SELECT substr(name, ?), json FROM notes WHERE substr(name, 1, ?) = ? ORDER BY name",
            (len(prefix) + 1, len(prefix), prefix),
        )
        return dict(rows.fetchall())

    def hashes(self, *, purpose: str = "collect", model_id: str | None = None) -> list[str]:
        rows = self._reader().execute(
            "SELECT DISTINCT request_hash FROM attempts WHERE purpose = ?1 "
            "AND (?2 IS NULL OR model_id = ?2) ORDER BY 1",
            (purpose, model_id),
        )
        return [row[0] for row in rows]

    def summary(self) -> list[dict[str, Any]]:
        rows = self._reader().execute(
            "SELECT purpose, model_id, count(*), sum(status = 'ok'), sum(status = 'truncated'), "
            "sum(status = 'refused'), sum(status = 'error'), sum(prompt_tokens), "
            "sum(completion_tokens), sum(cost_usd), "
            "sum(status <> 'error' AND cost_usd IS NULL), min(requested_at), max(requested_at) "
            "FROM attempts GROUP BY purpose, model_id ORDER BY purpose, model_id"
        )
        return [dict(zip(SUMMARY, row, strict=True)) for row in rows]

    def _standing(self, hashes: Sequence[str]) -> dict[Key, tuple[Settled, int]]:
        rows: dict[Key, list[tuple[int, str, bool, str]]] = defaultdict(list)
        for start in range(0, len(hashes), _LOOKUP):
            chunk = hashes[start : start + _LOOKUP]
            found = self._reader().execute(
                "SELECT request_hash, sample, id, status, permanent, run FROM attempts "
                f"WHERE request_hash IN ({', '.join('?' * len(chunk))})",
                chunk,
            )
            for request_hash, sample, attempt_id, status, permanent, run in found:
                rows[request_hash, sample].append((attempt_id, status, bool(permanent), run))
        return {key: standing(tries) for key, tries in rows.items()}

    def _reader(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._readers, "connection", None)
        if connection is None:
            connection = _connect(self.path, other_thread=True)
            connection.execute("PRAGMA query_only = ON")
            self._readers.connection = connection
            self._opened.append(connection)
        return connection

    # -- writing ---------------------------------------------------------------

    def append(self, attempts: Sequence[Attempt], *, settles: bool, done: Acknowledge) -> None:
        self._queue.put(_Append(attempts, settles, done))

    def claim(self, keys: Sequence[Key], *, after: int) -> Future[Claim]:
        return self._submit(lambda connection: self._claim(connection, keys, after))

    def release(self, keys: Sequence[Key]) -> None:
        owner = self._owner.name

        def give_up(connection: sqlite3.Connection) -> None:
            connection.executemany(_UNCLAIM, [(*key, owner) for key in keys])

        self._submit(give_up)

    def remember(self, notes: Mapping[str, str]) -> None:
        rows = sorted(notes.items())

        def keep(connection: sqlite3.Connection) -> None:
            connection.executemany("INSERT OR REPLACE INTO notes VALUES (?, ?)", rows)

        self._submit(keep).result()

    def forget(self, names: Sequence[str]) -> None:
        def drop(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM notes WHERE name = ?", [(n,) for n in names])

        self._submit(drop).result()

    def flush(self) -> None:
        self._submit(lambda connection: None).result()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._registered and self._failed is None:
            self._submit(self._leave)
        self._queue.put(None)
        self._thread.join()
        for reader in self._opened:
            reader.close()
        if self._failed is not None:
            raise self._failed

    def _submit(self, work: Callable[[sqlite3.Connection], Any]) -> Future[Any]:
        task = _Task(work)
        self._queue.put(task)
        return task.future

    def _write(self) -> None:
        connection = _connect(self.path, other_thread=True)
        connection.execute("PRAGMA synchronous = FULL")
        waiting: list[_Append] = []
        due = 0.0
        while True:
            try:
                wait = max(0.0, due - time.monotonic()) if waiting else Owner.HEARTBEAT_S
                item = self._queue.get(timeout=wait)
            except queue.Empty:
                if waiting:
                    self._commit(connection, waiting)
                    waiting = []
                elif self._registered:
                    self._run(connection, _Task(self._owner.beat))
                continue
            if isinstance(item, _Append):
                if not waiting:
                    due = time.monotonic() + self._group_seconds
                waiting.append(item)
                # More may wait already: a larger group costs no more.
                full = len(waiting) >= self._group_rows and self._queue.empty()
                if full or len(waiting) >= 8 * self._group_rows:
                    self._commit(connection, waiting)
                    waiting = []
                continue
            if waiting:
                self._commit(connection, waiting)
                waiting = []
            if item is None:
                connection.close()
                return
            self._run(connection, item)

    def _commit(self, connection: sqlite3.Connection, waiting: list[_Append]) -> None:
        fault = self._failed
        if fault is None:
            owner = self._owner.name
            try:
                with _transaction(connection):
                    connection.executemany(
                        _INSERT, [_row(a) for item in waiting for a in item.attempts]
                    )
                    connection.executemany(
                        _UNCLAIM,
                        [
                            (a.request_hash, a.sample, owner)
                            for item in waiting
                            if item.settles
                            for a in item.attempts
                        ],
                    )
            except (sqlite3.Error, OSError) as error:
                # After a failed commit nothing more is accepted: an answer that is
                # not kept would be paid for twice.
                fault = self._failed = _named(error, self.path)
        for item in waiting:
            item.done(fault)

    def _run(self, connection: sqlite3.Connection, task: _Task) -> None:
        if self._failed is not None:
            task.future.set_exception(self._failed)
            return
        try:
            with _transaction(connection):
                result = task.work(connection)
        except (sqlite3.Error, OSError) as error:
            self._failed = _named(error, self.path)
            task.future.set_exception(self._failed)
        else:
            task.future.set_result(result)

    def _claim(self, connection: sqlite3.Connection, keys: Sequence[Key], after: int) -> Claim:
        owner = self._owner
        self._registered = True
        owner.beat(connection)
        claim = Claim()
        alive: dict[str, bool] = {owner.name: True}
        for key in keys:
            newer = connection.execute(
                "SELECT 1 FROM attempts WHERE request_hash = ? AND sample = ? AND id > ? "
                "AND (permanent OR status <> 'error') LIMIT 1",
                (*key, after),
            ).fetchone()
            if newer:
                claim.settled.append(key)
                continue
            holder = connection.execute(
                "SELECT owner FROM claims WHERE request_hash = ? AND sample = ?", key
            ).fetchone()
            if holder and holder[0] != owner.name:
                if holder[0] not in alive:
                    alive[holder[0]] = Owner.is_alive(connection, holder[0])
                if alive[holder[0]]:
                    claim.held.append(key)
                    continue
            connection.execute("INSERT OR REPLACE INTO claims VALUES (?, ?, ?)", (*key, owner.name))
            claim.granted.append(key)
        return claim

    def _leave(self, connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM claims WHERE owner = ?", (self._owner.name,))
        connection.execute("DELETE FROM owners WHERE owner = ?", (self._owner.name,))


class _Append:
    __slots__ = ("attempts", "done", "settles")

    def __init__(self, attempts: Sequence[Attempt], settles: bool, done: Acknowledge) -> None:
        self.attempts = attempts
        self.settles = settles
        self.done = done


class _Task:
    __slots__ = ("future", "work")

    def __init__(self, work: Callable[[sqlite3.Connection], Any]) -> None:
        self.work = work
        self.future: Future[Any] = Future()


class _transaction:
    """BEGIN IMMEDIATE … COMMIT, so that two processes queue up instead of failing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._connection.execute("COMMIT")
        elif self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def _connect(path: Path, *, other_thread: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=60, isolation_level=None, check_same_thread=not other_thread
    )
    connection.execute("PRAGMA busy_timeout = 60000")
    return connection


def _row(attempt: Attempt) -> tuple[Any, ...]:
    return tuple(getattr(attempt, name) for name in COLUMNS)


def _attempt(row: Sequence[Any]) -> Attempt:
    values = dict(zip(COLUMNS, row, strict=True))
    values["permanent"] = bool(values["permanent"])
    return Attempt(**values)


def _named(error: BaseException, path: Path) -> RouteyardError:
    text = str(error)
    if "full" in text or getattr(error, "errno", None) in (28, 122):
        return DiskFull(
            "the disk is full: the ledger takes no more answers",
            where=str(path),
            next_step="free some space and run the same command; acknowledged answers are kept",
        )
    return BadInput(
        f"the ledger cannot be used: {text}",
        where=str(path),
        next_step="check that the file is a ledger of this workspace and can be written",
    )
