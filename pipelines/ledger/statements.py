"""Tables and statements of a ledger, with what differs between databases as data.

Values are marked `?` in every statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from routeyard.pipelines.ledger.attempt import BILLED_SQL, COLUMNS
from routeyard.pipelines.ledger.charges import SCHEMA as CHARGES

#: Names of an attempt's columns, for SQL.
NAMES = ", ".join(COLUMNS)
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
        seen: Type of a lease's heartbeat.
        clock: SQL of its first value.
        beat: SQL of each further value.
        beat_read: SQL of the heartbeat as a number that differs after each renewal.
        silence: SQL of the seconds since the renewal by the server's clock; null without one.
        table_options: What ends the definition of a table without ids.
    """

    attempt_id: str
    default_type: str
    integer: str
    seen: str
    clock: str
    beat: str
    beat_read: str
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
    owner TEXT PRIMARY KEY, host TEXT, pid {self.integer}, started TEXT, seen {self.seen} NOT NULL
);
CREATE TABLE IF NOT EXISTS claims (
    request_hash TEXT NOT NULL, sample {self.integer} NOT NULL, owner TEXT NOT NULL,
    PRIMARY KEY (request_hash, sample)
) {self.table_options};
{CHARGES}
"""

    @property
    def begin_lease(self) -> str:
        """Statement that writes a new lease."""
        return f"INSERT INTO owners VALUES (?, ?, ?, ?, {self.clock})"

    @property
    def renew_lease(self) -> str:
        """Statement that gives a row if the lease is still there, and renews it."""
        return f"UPDATE owners SET seen = {self.beat} WHERE owner = ? RETURNING owner"

    @property
    def read_lease(self) -> str:
        """Statement that reads whose a lease is, its heartbeat and the server's silence."""
        return (
            f"SELECT host, pid, started, {self.beat_read}, {self.silence} "
            "FROM owners WHERE owner = ?"
        )


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
    "sum(cost_usd), count(*) FILTER (WHERE status <> 'error' AND cost_usd IS NULL), "
    "min(requested_at), max(requested_at) FROM attempts GROUP BY 1, 2 ORDER BY 1, 2"
)
SPENDING = (
    "SELECT run, model_id, sum(cost_usd) FROM attempts WHERE cost_usd IS NOT NULL GROUP BY 1, 2"
)
# With one mark for each request hash.
TRIES = (
    f"SELECT request_hash, sample, id, status, permanent, run, {BILLED_SQL} "
    "FROM attempts WHERE request_hash IN ({marks})"
)
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
