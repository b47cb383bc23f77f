"""What both ledgers have in common: the same statements, in SQL that both databases read.

A database gives four things: how rows are read, how work is done in a
transaction, how attempts are inserted, and how an owner says that it lives.
Values stand as `?` in every statement.
"""

from __future__ import annotations

import abc
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Self

from pipelines.ledger.attempt import BILLED_SQL, COLUMNS, Attempt
from pipelines.ledger.charges import Charge, ChargeBounds, Execute, Granted, charge, charged
from pipelines.ledger.group_commit import Appended, GroupCommit
from pipelines.ledger.lease import Lease
from pipelines.ledger.ledger import (
    SUMMARY,
    Acknowledge,
    AnsweredKey,
    AnswerKey,
    Claim,
    SettledKey,
    misled,
    newest_usable,
)

#: Hashes per SELECT; both databases take more.
_LOOKUP = 500
#: Rows per page of a long read.
_PAGE = 1000
NAMES = ", ".join(COLUMNS)
_UNCLAIM = "DELETE FROM claims WHERE request_hash = ? AND sample = ? AND owner = ?"


class SqlLedger(abc.ABC):
    """`Ledger` over a database; `sqlite.py` and `postgres.py` say which."""

    #: Columns of an attempt as they are read; `_attempt` makes one of them.
    _columns = NAMES

    def __init__(self) -> None:
        self._owner = Lease.this_process()
        self._registered = False
        self._closed = False
        self._group = GroupCommit(
            commit=self._commit,
            run=self._transact,
            idle=self._beat_when_registered,
            idle_seconds=Lease.HEARTBEAT_S,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what a database gives ---------------------------------------------------

    @abc.abstractmethod
    def _read(self, sql: str, values: Sequence[Any] = ()) -> list[Sequence[Any]]:
        """Rows, from any thread."""

    @abc.abstractmethod
    def _transact(self, work: Callable[[Execute], Any]) -> Any:
        """Do work in a transaction of the writing connection, or raise what went wrong."""

    @abc.abstractmethod
    def _insert(self, attempts: Sequence[Attempt]) -> None:
        """Insert into `attempts`, within a transaction."""

    @abc.abstractmethod
    def _many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """One statement for each row, within a transaction."""

    @abc.abstractmethod
    def _beat(self, execute: Execute) -> None:
        """Say that this owner lives."""

    @abc.abstractmethod
    def _owner_lives(self, execute: Execute, name: str) -> bool:
        """Whether the process of another owner still runs."""

    @abc.abstractmethod
    def _disconnect(self) -> None:
        """Close every connection."""

    def _attempt(self, row: Sequence[Any]) -> Attempt:
        values = dict(zip(COLUMNS, row, strict=True))
        values["permanent"] = bool(values["permanent"])
        return Attempt(**values)

    # -- reading ---------------------------------------------------------------

    def position(self) -> int:
        return int(self._read("SELECT coalesce(max(id), 0) FROM attempts")[0][0])

    def settled(self, hashes: Sequence[str]) -> dict[AnswerKey, SettledKey]:
        return {key: found for key, (found, _) in self._standing(hashes).items()}

    def answered(self, hashes: Sequence[str]) -> dict[AnswerKey, AnsweredKey]:
        found = self._standing(hashes)
        by_id = {row.attempt_id: (key, row, count) for key, (row, count) in found.items()}
        answers: dict[AnswerKey, AnsweredKey] = {}
        for marks, chunk in _chunks(sorted(by_id)):
            sql = f"SELECT id, {self._columns} FROM attempts WHERE id IN ({marks})"
            for number, *values in self._read(sql, chunk):
                key, settled, count = by_id[number]
                attempt = self._attempt(values)
                if (attempt.request_hash, attempt.sample) != key:
                    raise misled(key)
                answers[key] = AnsweredKey(attempt, count, settled.billed)
        return answers

    def attempts(self, *, after: int = 0, purpose: str | None = None) -> Iterator[Attempt]:
        only, given = ("AND purpose = ?", [purpose]) if purpose is not None else ("", [])
        sql = (
            f"SELECT id, {self._columns} FROM attempts WHERE id > ? {only} "
            f"ORDER BY id LIMIT {_PAGE}"
        )
        while rows := self._read(sql, [after, *given]):
            for number, *values in rows:
                yield self._attempt(values)
                after = number

    def recall(self, prefix: str) -> dict[str, str]:
        rows = self._read(
            "SELECT substr(name, ?), json FROM notes WHERE substr(name, 1, ?) = ? ORDER BY name",
            (len(prefix) + 1, len(prefix), prefix),
        )
        return {str(name): str(text) for name, text in rows}

    def hashes(self, *, purpose: str = "collect", model_id: str | None = None) -> list[str]:
        only, given = ("AND model_id = ?", [model_id]) if model_id is not None else ("", [])
        sql = f"SELECT DISTINCT request_hash FROM attempts WHERE purpose = ? {only} ORDER BY 1"
        return [row[0] for row in self._read(sql, [purpose, *given])]

    def summary(self) -> list[dict[str, Any]]:
        counts = ", ".join(
            f"count(*) FILTER (WHERE status = '{name}')"
            for name in ("ok", "truncated", "refused", "error")
        )
        rows = self._read(
            f"SELECT purpose, model_id, count(*), {counts}, "
            "CAST(sum(prompt_tokens) AS bigint), CAST(sum(completion_tokens) AS bigint), "
            "sum(cost_usd), count(*) FILTER (WHERE status <> 'error' AND cost_usd IS NULL), "
            "min(requested_at), max(requested_at) FROM attempts GROUP BY 1, 2 ORDER BY 1, 2"
        )
        return [dict(zip(SUMMARY, row, strict=True)) for row in rows]

    def spending(self) -> list[tuple[str, str, str, float]]:
        rows = self._read(
            "SELECT run, settings_hash, model_id, sum(cost_usd) FROM attempts "
            "WHERE cost_usd IS NOT NULL GROUP BY 1, 2, 3"
        )
        return [(run, settings, model, float(usd)) for run, settings, model, usd in rows]

    def charged(self, account: str) -> dict[str, float]:
        return charged(self._read, account)

    def _standing(self, hashes: Sequence[str]) -> dict[AnswerKey, tuple[SettledKey, int]]:
        rows: dict[AnswerKey, list[tuple[int, str, bool, str, bool]]] = defaultdict(list)
        for marks, chunk in _chunks(list(hashes)):
            for request_hash, sample, number, status, permanent, run, billed in self._read(
                f"SELECT request_hash, sample, id, status, permanent, run, {BILLED_SQL} "
                f"FROM attempts WHERE request_hash IN ({marks})",
                chunk,
            ):
                row = (number, status, bool(permanent), run, bool(billed))
                rows[request_hash, sample].append(row)
        return {key: newest_usable(tries) for key, tries in rows.items()}

    # -- writing ---------------------------------------------------------------

    def append(self, attempts: Sequence[Attempt], *, settles: bool, done: Acknowledge) -> None:
        self._group.append(Appended(attempts, settles, done))

    def claim(self, keys: Sequence[AnswerKey], *, after: int) -> Future[Claim]:
        return self._group.submit(partial(self._claim, keys, after))

    def release(self, keys: Sequence[AnswerKey]) -> None:
        self._group.submit(lambda _: self._unclaim(keys))

    def remember(self, notes: Mapping[str, str]) -> None:
        sql = (
            "INSERT INTO notes VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET json = excluded.json"
        )
        self._group.submit(lambda _: self._many(sql, sorted(notes.items()))).result()

    def forget(self, names: Sequence[str]) -> None:
        rows = [(name,) for name in names]
        self._group.submit(lambda _: self._many("DELETE FROM notes WHERE name = ?", rows)).result()

    def charge(
        self,
        account: str,
        bounds: ChargeBounds,
        wanted: Sequence[Charge],
        settled: Mapping[str, float | None],
    ) -> Future[list[Granted]]:
        def work(execute: Execute) -> list[Granted]:
            self._registered = True
            self._beat(execute)
            owner = self._owner.name

            def lives(name: str) -> bool:
                return name == owner or self._owner_lives(execute, name)

            return charge(execute, account, bounds, wanted, settled, owner=owner, lives=lives)

        return self._group.submit(work)

    def flush(self) -> None:
        self._group.submit(lambda _: None).result()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._registered and self._group.failed is None:
            self._group.submit(self._leave)
        self._group.stop()
        self._disconnect()
        if self._group.failed is not None:
            raise self._group.failed
        if self._group.untold is not None:
            raise self._group.untold

    def _commit(self, group: Sequence[Appended]) -> None:
        ended = [(a.request_hash, a.sample) for i in group if i.settles for a in i.attempts]

        def keep(_: Execute) -> None:
            self._insert([attempt for item in group for attempt in item.attempts])
            self._unclaim(ended)

        self._transact(keep)

    def _unclaim(self, keys: Sequence[AnswerKey]) -> None:
        if keys:
            self._many(_UNCLAIM, [(*key, self._owner.name) for key in keys])

    def _claim(self, keys: Sequence[AnswerKey], after: int, execute: Execute) -> Claim:
        self._registered = True
        self._beat(execute)
        settled: set[AnswerKey] = set()
        holders: dict[AnswerKey, str] = {}
        for marks, chunk in _chunks(sorted({request_hash for request_hash, _ in keys})):
            for request_hash, sample in execute(
                f"SELECT request_hash, sample FROM attempts WHERE request_hash IN ({marks}) "
                "AND id > ? AND (permanent OR status <> 'error')",
                [*chunk, after],
            ):
                settled.add((request_hash, sample))
            for request_hash, sample, owner in execute(
                f"SELECT request_hash, sample, owner FROM claims WHERE request_hash IN ({marks})",
                chunk,
            ):
                holders[request_hash, sample] = owner
        claim = Claim()
        alive: dict[str, bool] = {}
        for key in keys:
            holder = holders.get(key, self._owner.name)
            if holder != self._owner.name and holder not in alive:
                alive[holder] = self._owner_lives(execute, holder)
            if key in settled:
                claim.settled.append(key)
            elif alive.get(holder, False):
                claim.held.append(key)
            else:
                claim.granted.append(key)
        self._many(
            "INSERT INTO claims VALUES (?, ?, ?) "
            "ON CONFLICT (request_hash, sample) DO UPDATE SET owner = excluded.owner",
            [(*key, self._owner.name) for key in claim.granted],
        )
        return claim

    def _beat_when_registered(self) -> None:
        if self._registered:
            self._transact(self._beat)

    def _leave(self, execute: Execute) -> None:
        execute("DELETE FROM claims WHERE owner = ?", (self._owner.name,))
        execute("DELETE FROM owners WHERE owner = ?", (self._owner.name,))


def _chunks(values: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """(`?` for each value, the values), so many at a time."""
    for start in range(0, len(values), _LOOKUP):
        chunk = list(values[start : start + _LOOKUP])
        yield ", ".join("?" * len(chunk)), chunk
