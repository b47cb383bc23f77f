"""What every ledger can do: keep attempts, say what is settled, hand out claims.

A ledger is append-only at attempt level. An answer is acknowledged after it is
durable, never before. A claim makes sure that of several processes on one
workspace only one sends a request; the claims of a dead process lapse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from pipelines.errors import BadInput
from pipelines.ledger.attempt import Attempt
from pipelines.ledger.charges import Charge, ChargeBounds, Granted

#: (request_hash, sample): what one answer is kept under.
AnswerKey = tuple[str, int]

#: Called from the ledger's thread once the attempts are durable, or with the fault.
Acknowledge = Callable[[BaseException | None], None]

#: Columns of `summary`; sums leave out what is unknown, which is counted apart.
SUMMARY = (
    "purpose", "model_id", "attempts", "ok", "truncated", "refused", "errors",
    "prompt_tokens", "completion_tokens", "cost_usd", "cost_unknown", "first", "last",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SettledKey:
    """The attempt that stands for a key: newest `ok`, else newest usable, else newest."""

    attempt_id: int
    status: str
    permanent: bool
    #: Attempts of all runs that were billed and gave no answer.
    billed: int = 0


@dataclass(frozen=True, slots=True)
class Claim:
    """Answer to `claim`: ours to send, answered since the plan, or held by another process."""

    granted: list[AnswerKey] = field(default_factory=list)
    settled: list[AnswerKey] = field(default_factory=list)
    held: list[AnswerKey] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AnsweredKey:
    """The attempt that stands for a key, and how many its run made."""

    attempt: Attempt
    attempts: int
    #: Attempts of all runs that were billed and gave no answer.
    billed: int = 0


class Ledger(Protocol):
    """Durable store of attempts; every method may be called from any thread."""

    def position(self) -> int:
        """Id of the newest attempt; a plan remembers it."""
        ...

    def settled(self, hashes: Sequence[str]) -> dict[AnswerKey, SettledKey]:
        """What stands for each key of these request hashes."""
        ...

    def answered(self, hashes: Sequence[str]) -> dict[AnswerKey, AnsweredKey]:
        """As `settled`, with the whole attempt."""
        ...

    def claim(self, keys: Sequence[AnswerKey], *, after: int) -> Future[Claim]:
        """Claim keys that no attempt newer than `after` has settled."""
        ...

    def release(self, keys: Sequence[AnswerKey]) -> None:
        """Give up claims without an answer."""
        ...

    def append(self, attempts: Sequence[Attempt], *, settles: bool, done: Acknowledge) -> None:
        """Queue attempts for the next group commit.

        `settles` ends the claims on their keys in the same transaction.
        """
        ...

    def remember(self, notes: Mapping[str, str]) -> None:
        """Keep notes by name, the newest of each name.

        `settings:<hash>` is what was asked beside the messages, `model:<id>` the
        pool's entry, `batch:<id>` a batch that is under way, `run:<id>` whose run it
        was, `address:<provider>` where a provider of that name first was.
        """
        ...

    def recall(self, prefix: str) -> dict[str, str]:
        """The notes whose name begins so, without the prefix."""
        ...

    def forget(self, names: Sequence[str]) -> None:
        """Drop notes."""
        ...

    def hashes(self, *, purpose: str = "collect", model_id: str | None = None) -> list[str]:
        """Request hashes of a purpose, in order."""
        ...

    def summary(self) -> list[dict[str, Any]]:
        """Counts, tokens and USD per purpose and model; see `SUMMARY`."""
        ...

    def spending(self) -> list[tuple[str, str, str, float]]:
        """(run, settings_hash, model_id, USD) of everything whose cost is known."""
        ...

    def charge(
        self,
        account: str,
        bounds: ChargeBounds,
        wanted: Sequence[Charge],
        settled: Mapping[str, float | None],
    ) -> Future[list[Granted]]:
        """Set money aside for calls and settle what was set aside; see `charges.charge`."""
        ...

    def charged(self, account: str) -> dict[str, float]:
        """USD charged to an account, per model, open charges included."""
        ...

    def attempts(self, *, after: int = 0, purpose: str | None = None) -> Iterator[Attempt]:
        """All attempts in the order they were made."""
        ...

    def flush(self) -> None:
        """Return when everything appended so far is durable."""
        ...

    def close(self) -> None:
        """Flush, give up this process's claims and close."""
        ...


def newest_usable(rows: Sequence[tuple[int, str, bool, str, bool]]) -> tuple[SettledKey, int]:
    """The attempt that stands among (id, status, permanent, run, billed), and its run's attempts.

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
