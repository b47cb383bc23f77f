"""The ledger in PostgreSQL, for workers on several hosts.

Writers queue on one advisory lock per transaction, so that attempt ids are
committed in order: a plan that remembers the newest id sees everything before
it. Group commits keep the queue short.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from pipelines.errors import BadInput, DiskFull, RouteyardError
from pipelines.ledger.attempt import COLUMNS, Attempt
from pipelines.ledger.group_commit import Appended, GroupCommit
from pipelines.ledger.ledger import SUMMARY, Acknowledge, Answered, Claim, Key, Settled, standing
from pipelines.ledger.owner import Owner

if TYPE_CHECKING:
    import psycopg

#: Any fixed number: the one lock that all writers of ledgers in a database take.
_LOCK = 0x526F757465  # "Route"
# What a server sent is kept as bytes: PostgreSQL text refuses NUL, which models do write.
_BYTES = (
    "error", "text", "finish_reason", "served_model", "provider", "system_fingerprint", "logprobs",
)  # fmt: skip
_TYPES = {
    **dict.fromkeys(("sample", "http_status", "choices"), "bigint"),
    **dict.fromkeys(
        (
            "prompt_tokens",
            "completion_tokens",
            "reasoning_tokens",
            "total_tokens",
            "call_completion_tokens",
        ),
        "bigint",
    ),
    **dict.fromkeys(("cost_usd", "latency_s", "ttft_s"), "double precision"),
    **dict.fromkeys(_BYTES, "bytea"),
    "permanent": "boolean",
}
_NAMES = ", ".join(COLUMNS)
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS attempts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    {", ".join(f"{name} {_TYPES.get(name, 'text')}" for name in COLUMNS)}
);
CREATE INDEX IF NOT EXISTS attempts_by_request ON attempts (request_hash, sample);
CREATE TABLE IF NOT EXISTS notes (name text PRIMARY KEY, json text NOT NULL);
CREATE TABLE IF NOT EXISTS owners (
    owner text PRIMARY KEY, host text, pid bigint, started text, seen timestamptz NOT NULL
);
CREATE TABLE IF NOT EXISTS claims (
    request_hash text NOT NULL, sample bigint NOT NULL, owner text NOT NULL,
    PRIMARY KEY (request_hash, sample)
);
"""
_BEAT = """
INSERT INTO owners VALUES (%s, %s, %s, %s, clock_timestamp())
ON CONFLICT (owner) DO UPDATE SET seen = excluded.seen
"""
_WANTED = "unnest(%s::text[], %s::bigint[]) AS wanted (request_hash, sample)"
_UNCLAIM = f"""
DELETE FROM claims USING {_WANTED}
WHERE claims.request_hash = wanted.request_hash AND claims.sample = wanted.sample AND owner = %s
"""


class PostgresLedger:
    """`Ledger` in a PostgreSQL database that many workers share.

    Args:
        url: `postgresql://…`, read from the environment by the caller and never printed.
        group_rows: Attempts that make a commit due.
        group_seconds: Longest an attempt waits for its commit.

    Raises:
        BadInput: psycopg is not installed, or the database cannot be used.
        DiskFull: the server's disk filled up; what was acknowledged is kept.
    """

    def __init__(self, url: str, *, group_rows: int = 64, group_seconds: float = 0.05) -> None:
        self._psycopg = _driver()
        self._url = url
        self._owner = Owner.this_process()
        self._registered = False
        self._closed = False
        self._writer = connect(url)
        self._reader = connect(url)
        self._transact(lambda connection: connection.execute(_SCHEMA))
        self._group = GroupCommit(
            commit=self._commit,
            run=self._transact,
            idle=self._beat_when_registered,
            idle_seconds=Owner.HEARTBEAT_S,
            group_rows=group_rows,
            group_seconds=group_seconds,
        )

    def __enter__(self) -> PostgresLedger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        # The address holds a password.
        return f"PostgresLedger({_place(self._url)})"

    # -- reading ---------------------------------------------------------------

    def position(self) -> int:
        rows = self._read("SELECT coalesce(max(id), 0) FROM attempts", ())
        return int(rows[0][0])

    def settled(self, hashes: Sequence[str]) -> dict[Key, Settled]:
        return {key: found for key, (found, _) in self._standing(hashes).items()}

    def answered(self, hashes: Sequence[str]) -> dict[Key, Answered]:
        found = self._standing(hashes)
        by_id = {row.attempt_id: (key, count) for key, (row, count) in found.items()}
        rows = self._read(f"SELECT id, {_NAMES} FROM attempts WHERE id = ANY(%s)", (list(by_id),))
        answers: dict[Key, Answered] = {}
        for number, *values in rows:
            key, count = by_id[number]
            answers[key] = Answered(_attempt(values), count)
        return answers

    def attempts(self, *, after: int = 0, purpose: str | None = None) -> Iterator[Attempt]:
        while True:
            rows = self._read(
                f"SELECT id, {_NAMES} FROM attempts WHERE id > %s "
                "AND (%s::text IS NULL OR purpose = %s) ORDER BY id LIMIT 1000",
                (after, purpose, purpose),
            )
            for number, *values in rows:
                yield _attempt(values)
                after = number
            if not rows:
                return

    def recall(self, prefix: str) -> dict[str, str]:
        rows = self._read(
            "SELECT substr(name, %s), json FROM notes WHERE starts_with(name, %s) ORDER BY name",
            (len(prefix) + 1, prefix),
        )
        found: dict[str, str] = dict(rows)
        return found

    def hashes(self, *, purpose: str = "collect", model_id: str | None = None) -> list[str]:
        rows = self._read(
            "SELECT DISTINCT request_hash FROM attempts WHERE purpose = %s "
            "AND (%s::text IS NULL OR model_id = %s) ORDER BY 1",
            (purpose, model_id, model_id),
        )
        return [row[0] for row in rows]

    def summary(self) -> list[dict[str, Any]]:
        rows = self._read(
            "SELECT purpose, model_id, count(*), "
            "count(*) FILTER (WHERE status = 'ok'), count(*) FILTER (WHERE status = 'truncated'), "
            "count(*) FILTER (WHERE status = 'refused'), count(*) FILTER (WHERE status = 'error'), "
            "sum(prompt_tokens)::bigint, sum(completion_tokens)::bigint, sum(cost_usd), "
            "count(*) FILTER (WHERE status <> 'error' AND cost_usd IS NULL), "
            "min(requested_at), max(requested_at) FROM attempts GROUP BY 1, 2 ORDER BY 1, 2",
            (),
        )
        return [dict(zip(SUMMARY, row, strict=True)) for row in rows]

    def _standing(self, hashes: Sequence[str]) -> dict[Key, tuple[Settled, int]]:
        rows: dict[Key, list[tuple[int, str, bool, str]]] = defaultdict(list)
        for request_hash, sample, number, status, permanent, run in self._read(
            "SELECT request_hash, sample, id, status, permanent, run FROM attempts "
            "WHERE request_hash = ANY(%s)",
            (list(hashes),),
        ):
            rows[request_hash, sample].append((number, status, permanent, run))
        return {key: standing(tries) for key, tries in rows.items()}

    def _read(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        try:
            with self._reader.transaction():
                rows: list[tuple[Any, ...]] = self._reader.execute(sql.encode(), values).fetchall()
                return rows
        except self._psycopg.Error as error:
            raise _named(error, self._url) from error

    # -- writing ---------------------------------------------------------------

    def append(self, attempts: Sequence[Attempt], *, settles: bool, done: Acknowledge) -> None:
        self._group.append(Appended(attempts, settles, done))

    def claim(self, keys: Sequence[Key], *, after: int) -> Future[Claim]:
        return self._group.submit(lambda connection: self._claim(connection, keys, after))

    def release(self, keys: Sequence[Key]) -> None:
        wanted = _columns(keys)
        self._group.submit(lambda c: c.execute(_UNCLAIM, (*wanted, self._owner.name)))

    def remember(self, notes: Mapping[str, str]) -> None:
        rows = sorted(notes.items())

        def keep(connection: psycopg.Connection[Any]) -> None:
            with connection.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO notes VALUES (%s, %s) "
                    "ON CONFLICT (name) DO UPDATE SET json = excluded.json",
                    rows,
                )

        self._group.submit(keep).result()

    def forget(self, names: Sequence[str]) -> None:
        self._group.submit(
            lambda c: c.execute("DELETE FROM notes WHERE name = ANY(%s)", (list(names),))
        ).result()

    def flush(self) -> None:
        self._group.submit(lambda connection: None).result()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._registered and self._group.failed is None:
            self._group.submit(self._leave)
        self._group.stop()
        self._writer.close()
        self._reader.close()
        if self._group.failed is not None:
            raise self._group.failed

    def _transact(self, work: Any) -> Any:
        try:
            with self._writer.transaction():
                self._writer.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                return work(self._writer)
        except self._psycopg.Error as error:
            raise _named(error, self._url) from error

    def _commit(self, group: Sequence[Appended]) -> None:
        rows = [_row(attempt) for item in group for attempt in item.attempts]
        ended = [(a.request_hash, a.sample) for i in group if i.settles for a in i.attempts]

        def keep(connection: psycopg.Connection[Any]) -> None:
            with connection.cursor() as cursor:
                with cursor.copy(f"COPY attempts ({_NAMES}) FROM STDIN".encode()) as copy:
                    for row in rows:
                        copy.write_row(row)
                if ended:
                    cursor.execute(_UNCLAIM, (*_columns(ended), self._owner.name))

        self._transact(keep)

    def _claim(self, connection: psycopg.Connection[Any], keys: Sequence[Key], after: int) -> Claim:
        self._registered = True
        self._beat(connection)
        wanted = _columns(keys)
        settled = set(
            connection.execute(
                f"SELECT DISTINCT request_hash, sample FROM attempts JOIN {_WANTED} "
                "USING (request_hash, sample) WHERE id > %s AND (permanent OR status <> 'error')",
                (*wanted, after),
            )
        )
        holders = {
            (request_hash, sample): holder
            for request_hash, sample, *holder in connection.execute(
                "SELECT request_hash, sample, claims.owner, host, pid, started, "
                "extract(epoch FROM clock_timestamp() - seen)::float8 "
                f"FROM claims JOIN {_WANTED} USING (request_hash, sample) "
                "LEFT JOIN owners ON owners.owner = claims.owner",
                wanted,
            )
        }
        claim = Claim()
        for key in keys:
            holder = holders.get(key)
            if key in settled:
                claim.settled.append(key)
            elif holder and holder[0] != self._owner.name and Owner.lives(*holder[1:]):
                claim.held.append(key)
            else:
                claim.granted.append(key)
        connection.execute(
            f"INSERT INTO claims SELECT request_hash, sample, %s FROM {_WANTED} "
            "ON CONFLICT (request_hash, sample) DO UPDATE SET owner = excluded.owner",
            (self._owner.name, *_columns(claim.granted)),
        )
        return claim

    def _beat(self, connection: psycopg.Connection[Any]) -> None:
        owner = self._owner
        connection.execute(_BEAT, (owner.name, owner.host, owner.pid, owner.started))

    def _beat_when_registered(self) -> None:
        if self._registered:
            self._transact(self._beat)

    def _leave(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute("DELETE FROM claims WHERE owner = %s", (self._owner.name,))
        connection.execute("DELETE FROM owners WHERE owner = %s", (self._owner.name,))


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
            next_step="pip install 'routeyard[postgres]'",
        ) from error
    return psycopg


def _columns(keys: Sequence[Key]) -> tuple[list[str], list[int]]:
    return [request_hash for request_hash, _ in keys], [sample for _, sample in keys]


def _row(attempt: Attempt) -> list[Any]:
    values = {name: getattr(attempt, name) for name in COLUMNS}
    for name in _BYTES:
        if values[name] is not None:
            values[name] = str(values[name]).encode("utf-8", "surrogatepass")
    return [values[name] for name in COLUMNS]


def _attempt(row: Sequence[Any]) -> Attempt:
    values = dict(zip(COLUMNS, row, strict=True))
    for name in _BYTES:
        if values[name] is not None:
            values[name] = bytes(values[name]).decode("utf-8", "surrogatepass")
    return Attempt(**values)
