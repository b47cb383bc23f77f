"""The ledger: every attempt is kept, settled keys are looked up, claims are granted.

It is append-only. An answer is acknowledged after it is durable, never before. A claim makes sure
that of several processes only one sends a request; it lasts as long as its process's lease
(docs/ledger.md).
"""

from __future__ import annotations

import abc
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Self

from routeyard.pipelines.ledger import statements as sql
from routeyard.pipelines.ledger.answer_keys import (
    AnsweredKey,
    AnswerKey,
    Claim,
    SettledKey,
    misled,
    newest_usable,
)
from routeyard.pipelines.ledger.attempt import COLUMNS, Attempt
from routeyard.pipelines.ledger.charges import (
    Charge,
    ChargeBounds,
    Execute,
    Granted,
    charge,
    charged,
    set_aside,
)
from routeyard.pipelines.ledger.group_commit import Acknowledge, Appended, GroupCommit
from routeyard.pipelines.ledger.held_lease import HeldLease
from routeyard.pipelines.ledger.lease import Clocks, Lease
from routeyard.pipelines.ledger.statements import SUMMARY, Dialect

#: Rows per page of a long read.
_PAGE = 1000


class Ledger(abc.ABC):
    """Durable store of attempts; every method may be called from any thread."""

    _dialect: Dialect
    _clocks = Clocks()
    _group_commit = GroupCommit

    def __init__(self) -> None:
        self._lease = self._new_lease()
        self._closed = False
        self._group = self._group_commit(
            commit=self._commit,
            run=self._run,
            idle=self._renew_when_registered,
            idle_seconds=Lease.HEARTBEAT_S,
            now=self._clocks.monotonic,
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
    def _disconnect(self) -> None:
        """Close every connection."""

    def _attempt(self, row: Sequence[Any]) -> Attempt:
        values = dict(zip(COLUMNS, row, strict=True))
        values["permanent"] = bool(values["permanent"])
        return Attempt(**values)

    # -- reading ---------------------------------------------------------------

    def position(self) -> int:
        """Id of the newest attempt; a plan remembers it."""
        return int(self._read(sql.POSITION)[0][0])

    def settled(self, hashes: Sequence[str]) -> dict[AnswerKey, SettledKey]:
        """The attempt that counts for each key of these request hashes."""
        return {key: found for key, (found, _) in self._counting(hashes).items()}

    def answered(self, hashes: Sequence[str]) -> dict[AnswerKey, AnsweredKey]:
        """As `settled`, with the whole attempts."""
        found = self._counting(hashes)
        by_id = {row.attempt_id: (key, row, count) for key, (row, count) in found.items()}
        answers: dict[AnswerKey, AnsweredKey] = {}
        for marks, chunk in sql.chunks(sorted(by_id)):
            query = f"{self._dialect.read_attempts} WHERE id IN ({marks})"
            for number, *values in self._read(query, chunk):
                key, settled, count = by_id[number]
                attempt = self._attempt(values)
                if (attempt.request_hash, attempt.sample) != key:
                    raise misled(key)
                answers[key] = AnsweredKey(attempt, count, settled.billed)
        return answers

    def attempts(self, *, after: int = 0, purpose: str | None = None) -> Iterator[Attempt]:
        """All attempts in the order they were made."""
        only, given = ("AND purpose = ?", [purpose]) if purpose is not None else ("", [])
        query = f"{self._dialect.read_attempts} WHERE id > ? {only} ORDER BY id LIMIT {_PAGE}"
        while rows := self._read(query, [after, *given]):
            for number, *values in rows:
                yield self._attempt(values)
                after = number

    def has_answers(self, settings_hash: str) -> bool:
        """Whether anything asked with these settings was ever answered."""
        return bool(self._read(sql.ANSWERED, (settings_hash,)))

    def recall(self, prefix: str) -> dict[str, str]:
        """Notes whose name begins so, without the prefix."""
        rows = self._read(sql.RECALL, (len(prefix) + 1, len(prefix), prefix))
        return {str(name): str(text) for name, text in rows}

    def hashes(self, *, purpose: str = "collect") -> list[str]:
        """Request hashes of a purpose, in order."""
        query = "SELECT DISTINCT request_hash FROM attempts WHERE purpose = ? ORDER BY 1"
        return [row[0] for row in self._read(query, [purpose])]

    def summary(self) -> list[dict[str, Any]]:
        """Counts, tokens and USD per purpose and model; see `SUMMARY`."""
        rows = self._read(sql.SUMMARIZE)
        return [dict(zip(SUMMARY, row, strict=True)) for row in rows]

    def spending(self) -> list[tuple[str, str, float]]:
        """(run, model_id, USD) of everything whose cost is known."""
        rows = self._read(sql.SPENDING)
        return [(run, model, float(usd)) for run, model, usd in rows]

    def charged(self, account: str) -> dict[str, float]:
        """USD charged to an account, per model, open charges included."""
        return charged(self._read, account)

    def set_aside(self, account: str) -> dict[str, tuple[int, float]]:
        """Calls whose worst case is charged to an account until they end, and their USD, per
        model."""
        return set_aside(self._read, account)

    def _counting(self, hashes: Sequence[str]) -> dict[AnswerKey, tuple[SettledKey, int]]:
        rows: dict[AnswerKey, list[tuple[int, str, bool, str, bool]]] = defaultdict(list)
        for marks, chunk in sql.chunks(list(hashes)):
            for request_hash, sample, number, status, permanent, run, billed in self._read(
                sql.TRIES.format(marks=marks), chunk
            ):
                row = (number, status, bool(permanent), run, bool(billed))
                rows[request_hash, sample].append(row)
        return {key: newest_usable(tries) for key, tries in rows.items()}

    # -- writing ---------------------------------------------------------------

    def append(self, attempts: Sequence[Attempt], *, settles: bool, done: Acknowledge) -> None:
        """Queue attempts for the next group commit.

        `settles` ends the claims on their keys in the same transaction.
        """
        self._group.append(Appended(attempts, settles, done))

    def claim(self, keys: Sequence[AnswerKey], *, after: int) -> Future[Claim]:
        """Claim keys that no attempt newer than `after` has settled."""
        return self._group.submit(partial(self._claim, keys, after))

    def holds(self, keys: Sequence[AnswerKey]) -> bool:
        """Whether these claims are surely still this process's; else claim them again.

        Asked before a request is sent: the process may have been stopped for too long.
        """
        return self._group.failed is None and self._lease.holds(keys)

    def release(self, keys: Sequence[AnswerKey]) -> None:
        """Give up claims without an answer."""
        self._group.submit(lambda _: self._unclaim(keys))

    def remember(self, notes: Mapping[str, str]) -> None:
        """Keep notes by name, the newest of each name.

        `settings:<hash>` is what was asked beside the messages, `model:<id>` the
        pool's entry, `batch:<id>` a batch that is under way, `run:<id>` the account of a
        run, `address:<provider>` where a provider of that name first was.
        """
        self._group.submit(lambda _: self._many(sql.REMEMBER, sorted(notes.items()))).result()

    def forget(self, names: Sequence[str]) -> None:
        """Drop notes."""
        rows = [(name,) for name in names]
        self._group.submit(lambda _: self._many(sql.FORGET, rows)).result()

    def charge(
        self,
        account: str,
        bounds: ChargeBounds,
        wanted: Sequence[Charge],
        settled: Mapping[str, float | None],
    ) -> Future[list[Granted]]:
        """Set money aside for calls and settle what was set aside; see `charges.charge`."""

        def work(execute: Execute) -> list[Granted]:
            owner = self._lease.renew(execute)

            def lives(name: str) -> bool:
                return name == owner or self._lease.is_held(execute, name)

            return charge(execute, account, bounds, wanted, settled, owner=owner, lives=lives)

        return self._group.submit(work)

    def flush(self) -> None:
        """Return when everything appended so far is durable."""
        self._group.submit(lambda _: None).result()

    def close(self) -> None:
        """Flush, give up this process's claims and close."""
        if self._closed:
            return
        self._closed = True
        if self._lease.begun and self._group.failed is None:
            self._group.submit(lambda execute: self._lease.end(execute, self._lease.name))
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

    def _run(self, work: Callable[[Execute], Any]) -> Any:
        result = self._transact(work)
        self._lease.written()
        return result

    def _unclaim(self, keys: Sequence[AnswerKey]) -> None:
        if keys:
            self._lease.claimed.difference_update(keys)
            self._many(sql.RELEASE, [(*key, self._lease.name) for key in keys])

    def _claim(self, keys: Sequence[AnswerKey], after: int, execute: Execute) -> Claim:
        ours = self._lease.renew(execute)
        settled: set[AnswerKey] = set()
        holders: dict[AnswerKey, str] = {}
        for marks, chunk in sql.chunks(sorted({request_hash for request_hash, _ in keys})):
            query = sql.SETTLED_SINCE.format(marks=marks)
            settled |= {(name, sample) for name, sample in execute(query, [*chunk, after])}
            for name, sample, owner in execute(sql.CLAIMED.format(marks=marks), chunk):
                holders[name, sample] = owner
        claim = Claim()
        alive = {
            owner: self._lease.is_held(execute, owner)
            for owner in sorted({holders[key] for key in keys if key in holders} - {ours})
        }
        for owner, held in alive.items():
            if not held:
                self._lease.end(execute, owner)
        for key in keys:
            if key in settled:
                claim.settled.append(key)
            elif alive.get(holders.get(key, ours), False):
                claim.held.append(key)
            else:
                claim.granted.append(key)
        self._many(sql.CLAIM, [(*key, ours) for key in claim.granted])
        self._lease.claimed.update(claim.granted)
        return claim

    # -- the lease of this process -----------------------------------------------

    def _new_lease(self) -> HeldLease:
        return HeldLease(self._dialect, self._clocks)

    def _renew_when_registered(self) -> None:
        if self._lease.begun:
            self._run(self._lease.renew)
