"""Keys of answers in a ledger, and what is stored under each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.ledger.attempt import Attempt

#: (request_hash, sample): what one answer is kept under.
AnswerKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class SettledKey:
    """The attempt that counts for a key: newest `ok`, else newest usable, else newest."""

    attempt_id: int
    status: str
    permanent: bool
    #: Attempts of all runs that were billed and gave no answer.
    billed: int = 0


@dataclass(frozen=True, slots=True)
class AnsweredKey:
    """The attempt that counts for a key, and how many its run made."""

    attempt: Attempt
    attempts: int
    #: Attempts of all runs that were billed and gave no answer.
    billed: int = 0


@dataclass(frozen=True, slots=True)
class Claim:
    """Result of `Ledger.claim`: ours to send, answered since the plan, or held by a process."""

    granted: list[AnswerKey] = field(default_factory=list)
    settled: list[AnswerKey] = field(default_factory=list)
    held: list[AnswerKey] = field(default_factory=list)


def newest_usable(rows: Sequence[tuple[int, str, bool, str, bool]]) -> tuple[SettledKey, int]:
    """The attempt that counts among (id, status, permanent, run, billed), and its run's attempts.

    Attempts of other runs do not count: a run that was killed may have met a
    fault that an undisturbed run meets once. What they cost does.
    """
    chosen = max(rows, key=lambda row: _rank(row[0], row[1]))
    settled = SettledKey(*chosen[:3], billed=sum(row[4] for row in rows))
    return settled, sum(row[3] == chosen[3] for row in rows)


def _rank(attempt_id: int, status: str) -> tuple[int, int]:
    level = {"ok": 2, "truncated": 1, "refused": 1}.get(status, 0)
    return level, attempt_id


def misled(key: AnswerKey) -> BadInput:
    """The error of an index that leads to the attempt of another request: it has no checksum."""
    return BadInput(
        "the index of the ledger is damaged: it leads to the answer of another request "
        f"(request {str(key[0])[:80]!r})",
        next_step="restore the ledger from a copy; or make its index again: "
        "`sqlite3 LEDGER 'REINDEX'`, `REINDEX TABLE attempts` in PostgreSQL",
    )
