"""The ledger: every attempt is kept, settled keys are looked up, claims are granted.

It is append-only. An answer is acknowledged after it is durable, never before. A claim makes sure
that of several processes only one sends a request; it lasts as long as its process's lease
(docs/ledger.md).
"""

from __future__ import annotations

import abc
import contextlib
import json
import os
import queue
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, Literal, Self

import pyarrow as pa

from routeyard.pipelines.common.machine import pid_space, runs, started
from routeyard.schemas import RESPONSES
from routeyard.schemas.errors import BadInput
from routeyard.schemas.recipe.pool import Model

# One row of the ledger: what one attempt sent and what came back.

#: Outcomes that give a response; a plan asks for nothing more.
USABLE = ("ok", "truncated", "refused")
#: Errors in which the server did its work and gave nothing to use: it bills them.
BILLED = ("no_content", "no_choices", "unreadable_verdict", "cut_verdict", "filtered_verdict")
#: The same for SQL, over the columns of an attempt.
BILLED_SQL = (
    "status = 'error' AND (cost_usd IS NOT NULL OR prompt_tokens IS NOT NULL "
    f"OR error_class IN ({', '.join(repr(name) for name in BILLED)}))"
)
#: Attempts that may have cost what nobody said: answers without a cost, and errors but those in
#: which the server refused the work. A connection that never came about is among the unknown.
UNPRICED_SQL = (
    "cost_usd IS NULL AND (status <> 'error' OR error_class = 'http_408' OR "
    "(substr(error_class, 1, 6) <> 'http_4' AND error_class <> 'insufficient_quota'))"
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt for one sample. Null is unknown, never zero or free."""

    request_hash: str
    sample: int
    query_id: str
    model_id: str
    settings_hash: str
    run: str
    purpose: str
    #: `ok`, `truncated`, `refused` or `error`
    status: str
    #: true when asking again cannot succeed
    permanent: bool
    requested_at: str
    http_status: int | None = None
    error_class: str | None = None
    error: str | None = None
    text: str | None = None
    finish_reason: str | None = None
    served_model: str | None = None
    provider: str | None = None
    system_fingerprint: str | None = None
    #: Choices that shared this call; their completion tokens are not told apart.
    choices: int = 1
    #: Completion tokens of the whole call.
    call_completion_tokens: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    total_tokens: int | None = None
    cost_usd: float | None = None
    cost_source: str | None = None
    latency_s: float | None = None
    ttft_s: float | None = None
    logprobs: str | None = None
    #: Among the prompt's tokens: read from the provider's cache, and written to it.
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None

    @property
    def usable(self) -> bool:
        return self.status in USABLE

    @property
    def reason(self) -> str | None:
        """Why there is no answer; null where there is one."""
        if self.status != "error":
            return None
        return f"{self.error_class}: {self.error}" if self.error else self.error_class

    @property
    def final(self) -> bool:
        """Nothing more is asked: a response, or an error that cannot go away."""
        return self.usable or self.permanent


def is_billed(attempt: Attempt) -> bool:
    """Whether an attempt without an answer was billed, as far as the server said."""
    return attempt.status == "error" and (
        attempt.cost_usd is not None
        or attempt.prompt_tokens is not None
        or attempt.error_class in BILLED
    )


COLUMNS: tuple[str, ...] = tuple(field.name for field in fields(Attempt))


# Keys of answers in a ledger, and what is stored under each.

#: (request_hash, sample): what one answer is kept under.
AnswerKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class SettledKey:
    """The attempt that counts for a key: newest `ok`, else newest usable, else newest."""

    attempt_id: int
    status: str
    permanent: bool
    #: Attempts of all runs that were billed and gave no answer.
    billed: int
    #: Attempts of its run. Those of others do not count: a run that was killed may have met a
    #: fault that an undisturbed run meets once.
    attempts: int


@dataclass(frozen=True, slots=True)
class AnsweredKey:
    """The attempt that counts for a key, whole."""

    attempt: Attempt
    attempts: int
    billed: int


@dataclass(frozen=True, slots=True)
class Claim:
    """Result of `Ledger.claim`: ours to send, answered since the plan, or held by a process."""

    granted: list[AnswerKey] = field(default_factory=list)
    settled: list[AnswerKey] = field(default_factory=list)
    held: list[AnswerKey] = field(default_factory=list)


def misled(key: AnswerKey) -> BadInput:
    """The error of an index that leads to the attempt of another request: it has no checksum."""
    return BadInput(
        "the index of the ledger is damaged: it leads to the answer of another request "
        f"(request {str(key[0])[:80]!r})",
        next_step="restore the ledger from a copy; or make its index again: "
        "`sqlite3 LEDGER 'REINDEX'`, `REINDEX TABLE attempts` in PostgreSQL",
    )


# Money set aside for calls, in the ledger: one bound for all runs, processes and hosts.
#
# A call's worst case is charged to its account before it is sent. When its cost is
# known the charge is replaced by it, within one transaction; what is not known stays
# charged. The open charges of a process that died stay too: its calls may be billed.

CHARGES_SCHEMA = """
CREATE TABLE IF NOT EXISTS charges (
    id TEXT PRIMARY KEY, account TEXT NOT NULL, model_id TEXT NOT NULL,
    usd DOUBLE PRECISION NOT NULL, owner TEXT
);
CREATE INDEX IF NOT EXISTS charges_by_account ON charges (account);
"""
CHARGE = "INSERT INTO charges VALUES (?, ?, ?, ?, ?)"
#: USD of an account by model and owner; without an owner they are settled.
CHARGED = "SELECT model_id, owner, sum(usd) FROM charges WHERE account = ? GROUP BY model_id, owner"

#: Runs one statement with `?` for its values and returns the rows.
Execute = Callable[[str, Sequence[Any]], Sequence[Sequence[Any]]]
#: `wait`: it fits when open charges of living processes turn out cheaper; `full`: never.
Granted = Literal["yes", "wait", "full"]


@dataclass(frozen=True, slots=True)
class Charge:
    """The worst case of one call, in USD."""

    id: str
    model_id: str
    usd: float


@dataclass(frozen=True, slots=True)
class ChargeBounds:
    """Most USD of an account: in total and per model; null is no bound."""

    total: float | None
    models: Mapping[str, float | None]


def charge(
    execute: Execute,
    account: str,
    bounds: ChargeBounds,
    wanted: Sequence[Charge],
    settled: Mapping[str, float | None],
    *,
    owner: str,
    lives: Callable[[str], bool],
) -> list[Granted]:
    """Settle some charges and grant others, in order, as far as the bounds allow.

    Args:
        settled: Charge id → what the call cost; null keeps the whole charge.
        lives: Whether the owner of an open charge still runs.
    """
    for name, usd in settled.items():
        _settle(execute, name, usd)
    if not wanted:
        return []
    # What is spent for good, and what living processes hold open.
    spent: defaultdict[str, float] = defaultdict(float)
    held: defaultdict[str, float] = defaultdict(float)
    alive: dict[str | None, bool] = {None: False}
    for model_id, name, usd in execute(CHARGED, (account,)):
        if name not in alive:
            alive[name] = lives(name)
        (held if alive[name] else spent)[model_id] += usd
    answers: list[Granted] = []
    for item in wanted:
        model = item.model_id
        limits = [
            (bound - gone, bound - gone - kept)
            for bound, gone, kept in (
                (bounds.models.get(model), spent[model], held[model]),
                (bounds.total, sum(spent.values()), sum(held.values())),
            )
            if bound is not None
        ]
        if all(item.usd <= left for _, left in limits):
            answers.append("yes")
            execute(CHARGE, (item.id, account, model, item.usd, owner))
            held[model] += item.usd
        else:
            answers.append("wait" if all(item.usd <= freed for freed, _ in limits) else "full")
    return answers


def _settle(execute: Execute, name: str, usd: float | None) -> None:
    rows = execute("SELECT account, model_id, usd FROM charges WHERE id = ?", (name,))
    if not rows:  # settled before, by a run that was killed before it said so
        return
    account, model_id, reserved = rows[0]
    execute("DELETE FROM charges WHERE id = ?", (name,))
    cost = reserved if usd is None else usd
    if cost:
        # One row per model for all that is settled, however long the benchmark lives.
        execute(
            f"{CHARGE} ON CONFLICT (id) DO UPDATE SET usd = charges.usd + excluded.usd",
            (f"settled\n{account}\n{model_id}", account, model_id, cost, None),
        )


# Tables and statements of a ledger, with what differs between databases as data.
#
# Values are marked `?` in every statement.

#: Columns of `Ledger.summary`; sums leave out unknown values, which are counted separately.
SUMMARY = (
    "purpose", "model_id", "attempts", "ok", "truncated", "refused", "errors",
    "prompt_tokens", "completion_tokens", "cost_usd", "cost_unknown", "first", "last",
)  # fmt: skip


@dataclass(frozen=True)
class Dialect:
    """What differs between the databases.

    Attributes:
        types: Types of columns of `attempts` that are not `default_type`.
        checksum: Column of an attempt's checksum; empty without one.
        clock: SQL of a lease's first heartbeat, a number.
        beat: SQL of each further one; it differs from the one before.
        silence: SQL of the seconds since the renewal by the server's clock; null without one.
        table_options: What ends the definition of a table without ids.
    """

    attempt_id: str
    default_type: str
    clock: str
    beat: str
    silence: str
    types: Mapping[str, str] = field(default_factory=dict)
    checksum: str = ""
    table_options: str = ""

    @property
    def attempt_columns(self) -> str:
        """Columns of an attempt as they are written and read."""
        return ", ".join([*COLUMNS, *filter(None, [self.checksum])])

    @property
    def read_attempts(self) -> str:
        """Start of a statement that reads whole attempts with their ids."""
        return f"SELECT id, {self.attempt_columns} FROM attempts"

    @property
    def schema(self) -> str:
        """Statements that make the tables that are missing."""
        columns = [f"{name} {self.types.get(name, self.default_type)}" for name in COLUMNS]
        return f"""
CREATE TABLE IF NOT EXISTS attempts (
    id {self.attempt_id},
    {", ".join([*columns, *filter(None, [self.checksum])])}
);
CREATE INDEX IF NOT EXISTS attempts_by_request ON attempts (request_hash, sample);
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, json TEXT NOT NULL) {self.table_options};
CREATE TABLE IF NOT EXISTS owners (
    owner TEXT PRIMARY KEY, host TEXT, pid bigint, started TEXT, seen DOUBLE PRECISION NOT NULL
);
CREATE TABLE IF NOT EXISTS claims (
    request_hash TEXT NOT NULL, sample bigint NOT NULL, owner TEXT NOT NULL,
    PRIMARY KEY (request_hash, sample)
) {self.table_options};
{CHARGES_SCHEMA}
"""


POSITION = "SELECT coalesce(max(id), 0) FROM attempts"
ANSWERED = "SELECT 1 FROM attempts WHERE settings_hash = ? AND status <> 'error' LIMIT 1"
RECALL = "SELECT substr(name, ?), json FROM notes WHERE substr(name, 1, ?) = ? ORDER BY name"
REMEMBER = "INSERT INTO notes VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET json = excluded.json"
FORGET = "DELETE FROM notes WHERE name = ?"
SUMMARIZE = (
    "SELECT purpose, model_id, count(*), "
    + "".join(
        f"count(*) FILTER (WHERE status = '{name}'), "
        for name in ("ok", "truncated", "refused", "error")
    )
    + "CAST(sum(prompt_tokens) AS bigint), CAST(sum(completion_tokens) AS bigint), "
    f"sum(cost_usd), count(*) FILTER (WHERE {UNPRICED_SQL}), "
    "min(requested_at), max(requested_at) FROM attempts GROUP BY 1, 2 ORDER BY 1, 2"
)
SPENDING = (
    "SELECT run, model_id, sum(cost_usd) FROM attempts WHERE cost_usd IS NOT NULL GROUP BY 1, 2"
)
# With one mark for each request hash.
SETTLED = f"""
SELECT request_hash, sample, id, status, permanent, billed, attempts FROM (
    SELECT request_hash, sample, id, status, permanent,
        count(*) FILTER (WHERE {BILLED_SQL}) OVER (PARTITION BY request_hash, sample) AS billed,
        count(*) OVER (PARTITION BY request_hash, sample, run) AS attempts,
        row_number() OVER (PARTITION BY request_hash, sample ORDER BY CASE
            WHEN status = 'ok' THEN 0 WHEN status IN ('truncated', 'refused') THEN 1 ELSE 2
            END, id DESC) AS place
    FROM attempts WHERE request_hash IN ({{marks}})
) AS tried WHERE place = 1"""
SETTLED_SINCE = (
    "SELECT request_hash, sample FROM attempts WHERE request_hash IN ({marks}) "
    "AND id > ? AND (permanent OR status <> 'error')"
)
CLAIMED = "SELECT request_hash, sample, owner FROM claims WHERE request_hash IN ({marks})"
CLAIM = (
    "INSERT INTO claims VALUES (?, ?, ?) "
    "ON CONFLICT (request_hash, sample) DO UPDATE SET owner = excluded.owner"
)
RELEASE = "DELETE FROM claims WHERE request_hash = ? AND sample = ? AND owner = ?"
RELEASE_ALL = "DELETE FROM claims WHERE owner = ?"
END_LEASE = "DELETE FROM owners WHERE owner = ?"
#: Values per SELECT; both databases take more.
_LOOKUP = 500


def chunks(values: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """(`?` for each value, the values), so many at a time."""
    for start in range(0, len(values), _LOOKUP):
        chunk = list(values[start : start + _LOOKUP])
        yield ", ".join("?" * len(chunk)), chunk


# The lease of a process: who holds claims, until when, and how others see that it has lapsed.
#
# docs/ledger.md states the protocol. A lease's name is its fencing token: no two leases ever have
# one name, and a lease that another process has ended never comes back.


@dataclass(frozen=True, slots=True)
class Lease:
    """One lease of one open ledger of one process.

    Attributes:
        host: Host, boot and namespaces in which `pid` means this process.
        started: Start time of the process; null where the system does not tell.
    """

    name: str
    host: str
    pid: int
    started: str | None

    #: Seconds between renewals, and for which a renewal holds by the holder's own clock.
    HEARTBEAT_S: ClassVar[float] = 10.0
    LEASE_S: ClassVar[float] = 120.0

    @classmethod
    def ends_after_s(cls) -> float:
        """Silence after which others may end a lease: who was stopped for less keeps it."""
        return cls.LEASE_S + 2 * cls.HEARTBEAT_S

    @classmethod
    def this_process(cls) -> Lease:
        pid = os.getpid()
        return cls(uuid.uuid4().hex, pid_space(), pid, started(pid))

    @staticmethod
    def process_ended(host: str | None, pid: int | None, began: str | None) -> bool:
        """Whether a process is known to be gone: only one of the same pid namespace can be."""
        if host is None or pid is None or host != pid_space():
            return False
        return started(pid) != began if began is not None else not runs(pid)


class Clocks:
    """The clocks that leases are judged by; nobody sets them. Tests put others in their place."""

    def monotonic(self) -> float:
        """Seconds that this process could have run: the silence of others is measured by it."""
        return time.monotonic()

    def own(self) -> float:
        """Seconds in which the machine's sleep counts: the process's own lease runs out by it."""
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def is_lapsed(unmoved_s: float, server_silent_s: float | None) -> bool:
    """Whether a lease may be ended by others.

    Args:
        server_silent_s: Seconds since the renewal by the database server's clock; null without
            one. A time outside the lease says either that it has run out, or
            that the server's clock was set: then the heartbeat alone decides.
    """
    if server_silent_s is not None and 0 <= server_silent_s < Lease.ends_after_s():
        return False
    return unmoved_s >= Lease.ends_after_s()


# The lease that one open ledger holds, its claims, and what it has seen of other leases.


class HeldLease:
    """Renews this process's lease and judges those of others, within transactions.

    Attributes:
        claimed: Keys claimed under the present lease.
        begun: Whether anything was ever written under a lease.
    """

    def __init__(self, dialect: Dialect, clocks: Clocks) -> None:
        self._dialect, self._clocks = dialect, clocks
        #: When, by the process's own clock, a renewal was begun, and when the last durable one was.
        self._renewing: float | None = None
        self._renewed: float | None = None
        #: Heartbeats of other leases, and since when they are what they are.
        self._seen: dict[str, tuple[float, float]] = {}
        self._lease = self.new()
        self.claimed: set[AnswerKey] = set()
        self.begun = False

    def new(self) -> Lease:
        return Lease.this_process()

    def process_ended(self, host: str | None, pid: int | None, began: str | None) -> bool:
        return Lease.process_ended(host, pid, began)

    @property
    def name(self) -> str:
        return self._lease.name

    def mark_durable(self) -> None:
        """What was executed last is durable."""
        if self._renewing is not None:
            self._renewed, self._renewing = self._renewing, None

    def holds(self, keys: Iterable[AnswerKey]) -> bool:
        """Whether the lease surely still runs, and covers these claims.

        It runs out two heartbeats before others may end it.
        """
        runs_still = (
            self._renewed is not None and self._clocks.own() - self._renewed < Lease.LEASE_S
        )
        return runs_still and self.claimed.issuperset(keys)

    def renew(self, execute: Execute) -> str:
        """Write that this process lives; returns the name of its lease.

        Where another process has ended the lease, a new one begins, without claims.
        """
        self._renewing = self._clocks.own()
        beat = f"UPDATE owners SET seen = {self._dialect.beat} WHERE owner = ? RETURNING owner"
        if not (self.begun and execute(beat, (self._lease.name,))):
            if self.begun:
                self._lease = self.new()
            self.claimed.clear()
            self.begun = True
            lease = self._lease
            row = (lease.name, lease.host, lease.pid, lease.started)
            execute(f"INSERT INTO owners VALUES (?, ?, ?, ?, {self._dialect.clock})", row)
        return self._lease.name

    def is_held(self, execute: Execute, name: str) -> bool:
        """Whether the lease of another process holds its claims and charges."""
        held = (
            f"SELECT host, pid, started, seen, {self._dialect.silence} FROM owners WHERE owner = ?"
        )
        for host, pid, began, beat, silent_s in execute(held, (name,)):
            if not self.process_ended(host, pid, began):
                return not is_lapsed(self._unmoved_s(name, beat), silent_s)
        return False

    def _unmoved_s(self, name: str, beat: float) -> float:
        """Seconds, by this process's clock, for which a lease's heartbeat is what it is now."""
        now = self._clocks.monotonic()
        last, since = self._seen.get(name, (beat, now))
        since = since if last == beat else now
        self._seen[name] = (beat, since)
        return now - since

    def end(self, execute: Execute, name: str) -> None:
        """End a lease as a whole: its process finds that out with its next renewal."""
        execute(RELEASE_ALL, (name,))
        execute(END_LEASE, (name,))


# One writing thread that commits what waits in groups.
#
# What came during one commit makes the next: no attempt waits for others, and durability costs a
# share of one disk flush per call where many are asked at once.

#: Called from the ledger's thread once the attempts are durable, or with the fault.
Acknowledge = Callable[[BaseException | None], None]
#: Appended attempts that one commit takes at most.
_MOST = 512


@dataclass(frozen=True, slots=True)
class Appended:
    """Attempts that wait for a commit and whoever waits for them."""

    attempts: Sequence[Attempt]
    settles: bool
    done: Acknowledge


class GroupCommit:
    """Runs a store's writes in order on one thread.

    Args:
        commit: Makes a group durable, or raises.
        run: Runs one piece of work in a separate transaction, or raises.
        idle: Called every `idle_seconds`, busy or not, at most one piece of work later.
        now: Seconds by a clock that nobody sets.

    After a fault nothing more is accepted, and every waiting caller gets it:
    an answer that is not kept would be paid for twice.

    Attributes:
        failed: Why nothing more is kept.
        untold: The first error of an `Acknowledge`. What it was to hear of is kept, and so
            is what comes later; but whoever waits for it may wait in vain.
    """

    def __init__(
        self,
        *,
        commit: Callable[[Sequence[Appended]], None],
        run: Callable[[Callable[[Any], Any]], Any],
        idle: Callable[[], None],
        idle_seconds: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._commit, self._run, self._idle = commit, run, idle
        self._idle_seconds, self._now = idle_seconds, now
        self._queue: queue.SimpleQueue[Appended | _Task | None] = queue.SimpleQueue()
        self._rested = now()
        self.failed: BaseException | None = None
        self.untold: BaseException | None = None
        self._begin()

    def _begin(self) -> None:
        self._thread = threading.Thread(target=self._write, name="ledger", daemon=True)
        self._thread.start()

    def append(self, item: Appended) -> None:
        """Queue for the next group."""
        self._queue.put(item)

    def submit(self, work: Callable[[Any], Any]) -> Future[Any]:
        """Run after everything that was queued before it is durable, unless it was cancelled."""
        task = _Task(work, Future())
        self._queue.put(task)
        return task.future

    def stop(self) -> None:
        """Return when all that was queued is done."""
        self._queue.put(None)
        self._thread.join()

    def _write(self) -> None:
        while self.work(max(0.0, self._rested + self._idle_seconds - self._now())):
            pass

    def work(self, wait_s: float) -> bool:
        """Do all that is queued, after waiting so long for the first of it; false once stopped."""
        waiting: list[Appended] = []
        with contextlib.suppress(queue.Empty):
            item = self._queue.get(wait_s > 0, wait_s)
            while item is not None:
                if isinstance(item, Appended):
                    waiting.append(item)
                else:
                    waiting = self._keep(waiting)
                    self._perform(item)
                if len(waiting) >= _MOST:
                    waiting = self._keep(waiting)
                item = self._queue.get_nowait()
            self._keep(waiting)
            return False
        self._keep(waiting)
        self._rest_in_time()
        return True

    def _keep(self, waiting: list[Appended]) -> list[Appended]:
        if not waiting:
            return waiting
        if self.failed is None:
            self._guard(lambda: self._commit(waiting))
        for item in waiting:
            try:
                item.done(self.failed)
            except BaseException as error:  # even `SystemExit` would end this thread in silence
                self.untold = self.untold or error
        self._rest_in_time()
        return []

    def _rest_in_time(self) -> None:
        # Who works steadily never waits in vain, and would be taken for silent.
        if self._now() - self._rested >= self._idle_seconds:
            self._guard(self._idle)
            self._rested = self._now()

    def _perform(self, task: _Task) -> None:
        if not task.future.set_running_or_notify_cancel():
            return  # nobody waits for it: what it claimed or charged would be held for nobody
        results: list[Any] = []
        if self.failed is None:
            self._guard(lambda: results.append(self._run(task.work)))
        if self.failed is not None:
            task.future.set_exception(self.failed)
        else:
            task.future.set_result(results[0])
        self._rest_in_time()

    def _guard(self, work: Callable[[], object]) -> None:
        if self.failed is not None:
            return
        try:
            work()
        except Exception as error:  # any fault ends the ledger, and its callers get it
            self.failed = error


@dataclass(frozen=True, slots=True)
class _Task:
    work: Callable[[Any], Any]
    future: Future[Any]


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
        return int(self._read(POSITION)[0][0])

    def settled(self, hashes: Sequence[str]) -> dict[AnswerKey, SettledKey]:
        """The attempt that counts for each key of these request hashes."""
        result = {}
        for marks, chunk in chunks(hashes):
            for name, sample, number, status, permanent, *counts in self._read(
                SETTLED.format(marks=marks), chunk
            ):
                result[name, sample] = SettledKey(number, status, bool(permanent), *counts)
        return result

    def answered(self, hashes: Sequence[str]) -> dict[AnswerKey, AnsweredKey]:
        """As `settled`, with the whole attempts."""
        by_id = {row.attempt_id: (key, row) for key, row in self.settled(hashes).items()}
        answers: dict[AnswerKey, AnsweredKey] = {}
        for marks, chunk in chunks(sorted(by_id)):
            query = f"{self._dialect.read_attempts} WHERE id IN ({marks})"
            for number, *values in self._read(query, chunk):
                key, settled = by_id[number]
                attempt = self._attempt(values)
                if (attempt.request_hash, attempt.sample) != key:
                    raise misled(key)
                answers[key] = AnsweredKey(attempt, settled.attempts, settled.billed)
        return answers

    def attempts(self, *, after: int = 0, purpose: str | None = None) -> Iterator[Attempt]:
        """All attempts in the order they were made."""
        only, params = ("AND purpose = ?", [purpose]) if purpose is not None else ("", [])
        query = f"{self._dialect.read_attempts} WHERE id > ? {only} ORDER BY id LIMIT {_PAGE}"
        while rows := self._read(query, [after, *params]):
            for number, *values in rows:
                yield self._attempt(values)
                after = number

    def has_answers(self, settings_hash: str) -> bool:
        """Whether anything asked with these settings was ever answered."""
        return bool(self._read(ANSWERED, (settings_hash,)))

    def recall(self, prefix: str) -> dict[str, str]:
        """Notes whose name begins so, without the prefix."""
        rows = self._read(RECALL, (len(prefix) + 1, len(prefix), prefix))
        return {str(name): str(text) for name, text in rows}

    def hashes(self, *, purpose: str = "collect") -> list[str]:
        """Request hashes of a purpose, in order."""
        query = "SELECT DISTINCT request_hash FROM attempts WHERE purpose = ? ORDER BY 1"
        return [row[0] for row in self._read(query, [purpose])]

    def summary(self) -> list[dict[str, Any]]:
        """Counts, tokens and USD per purpose and model; see `SUMMARY`."""
        rows = self._read(SUMMARIZE)
        return [dict(zip(SUMMARY, row, strict=True)) for row in rows]

    def spending(self) -> list[tuple[str, str, float]]:
        """(run, model_id, USD) of everything whose cost is known."""
        rows = self._read(SPENDING)
        return [(run, model, float(usd)) for run, model, usd in rows]

    def charged(self, account: str) -> dict[str, float]:
        """USD charged to an account, per model, open charges included."""
        usd: defaultdict[str, float] = defaultdict(float)
        for model_id, _, part in self._read(CHARGED, (account,)):
            usd[model_id] += part
        return dict(usd)

    def set_aside(self, account: str) -> tuple[int, float]:
        """Calls whose worst case is charged to an account until they end, and their USD."""
        rows = self._read(
            "SELECT count(*), coalesce(sum(usd), 0) FROM charges "
            "WHERE account = ? AND owner IS NOT NULL",
            (account,),
        )
        return int(rows[0][0]), float(rows[0][1])

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

        `model:<id>` is the
        pool's entry, `batch:<id>` a batch that is under way, `run:<id>` the account of a
        run, `listed:<benchmark>/<provider>` what a local server listed when it was first asked.
        """
        self._group.submit(lambda _: self._many(REMEMBER, sorted(notes.items()))).result()

    def forget(self, names: Sequence[str]) -> None:
        """Drop notes."""
        rows = [(name,) for name in names]
        self._group.submit(lambda _: self._many(FORGET, rows)).result()

    def charge(
        self,
        account: str,
        bounds: ChargeBounds,
        wanted: Sequence[Charge],
        settled: Mapping[str, float | None],
    ) -> Future[list[Granted]]:
        """Set money aside for calls and settle what was set aside; see `charge`."""

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
        self._lease.mark_durable()
        return result

    def _unclaim(self, keys: Sequence[AnswerKey]) -> None:
        if keys:
            self._lease.claimed.difference_update(keys)
            self._many(RELEASE, [(*key, self._lease.name) for key in keys])

    def _claim(self, keys: Sequence[AnswerKey], after: int, execute: Execute) -> Claim:
        ours = self._lease.renew(execute)
        settled: set[AnswerKey] = set()
        holders: dict[AnswerKey, str] = {}
        for marks, chunk in chunks(sorted({request_hash for request_hash, _ in keys})):
            query = SETTLED_SINCE.format(marks=marks)
            settled |= {(name, sample) for name, sample in execute(query, [*chunk, after])}
            for name, sample, owner in execute(CLAIMED.format(marks=marks), chunk):
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
        self._many(CLAIM, [(*key, ours) for key in claim.granted])
        self._lease.claimed.update(claim.granted)
        return claim

    # -- the lease of this process -----------------------------------------------

    def _new_lease(self) -> HeldLease:
        return HeldLease(self._dialect, self._clocks)

    def _renew_when_registered(self) -> None:
        if self._lease.begun:
            self._run(self._lease.renew)


# The answers that a ledger holds, as one table, without a recipe or queries.

_CHUNK = 1000
#: `responses` and what only a ledger knows.
ANSWERS_SCHEMA = pa.schema(
    [
        *RESPONSES.schema,
        pa.field("total_tokens", pa.int64()),
        pa.field("choices", pa.int32()),
        pa.field("purpose", pa.string()),
    ]
)


def answers_table(ledger: Ledger, *, purpose: str = "collect") -> pa.Table:
    """The attempt that counts of every (request, sample) of a purpose; columns of `SCHEMA`."""
    return pa.Table.from_batches(_batches(ledger, purpose), schema=ANSWERS_SCHEMA)


def _batches(ledger: Ledger, purpose: str) -> Iterator[pa.RecordBatch]:
    hashes = ledger.hashes(purpose=purpose)
    for start in range(0, len(hashes), _CHUNK):
        rows = []
        for (_, sample), result in sorted(ledger.answered(hashes[start : start + _CHUNK]).items()):
            attempt = result.attempt
            row = {name: getattr(attempt, name, None) for name in ANSWERS_SCHEMA.names}
            rows.append(row | {"sample": sample, "attempts": result.attempts})
        yield pa.RecordBatch.from_pylist(rows, schema=ANSWERS_SCHEMA)


def asked_models(ledger: Ledger) -> list[Model]:
    """The pool's entries of the models that were asked, as the last run had them."""
    notes = ledger.recall("model:")
    return [Model.model_validate(json.loads(text)) for text in notes.values()]
