"""Money set aside for calls, in the ledger: one bound for all runs, processes and hosts.

A call's worst case is charged to its account before it is sent. When its cost is
known the charge is replaced by it, within one transaction; what is not known stays
charged. The open charges of a process that died stay too: its calls may be billed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

SCHEMA = """
CREATE TABLE IF NOT EXISTS charges (
    id TEXT PRIMARY KEY, account TEXT NOT NULL, model_id TEXT NOT NULL,
    usd DOUBLE PRECISION NOT NULL, owner TEXT
);
CREATE INDEX IF NOT EXISTS charges_by_account ON charges (account);
"""

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
    book = _Book(execute, account, lives)
    answers: list[Granted] = []
    for one in wanted:
        answer = book.fits(one, bounds)
        answers.append(answer)
        if answer == "yes":
            execute(
                "INSERT INTO charges VALUES (?, ?, ?, ?, ?)",
                (one.id, account, one.model_id, one.usd, owner),
            )
            book.add(one.model_id, one.usd, is_open=True)
    return answers


def charged(execute: Execute, account: str) -> dict[str, float]:
    """USD charged to an account, per model, open charges included."""
    rows = execute(
        "SELECT model_id, sum(usd) FROM charges WHERE account = ? GROUP BY model_id", (account,)
    )
    return {model_id: float(usd) for model_id, usd in rows}


def set_aside(execute: Execute, account: str) -> dict[str, tuple[int, float]]:
    """Open charges of an account, per model: how many, and their USD."""
    rows = execute(
        "SELECT model_id, count(*), sum(usd) FROM charges "
        "WHERE account = ? AND owner IS NOT NULL GROUP BY model_id",
        (account,),
    )
    return {model_id: (int(count), float(usd)) for model_id, count, usd in rows}


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
            "INSERT INTO charges VALUES (?, ?, ?, ?, NULL) "
            "ON CONFLICT (id) DO UPDATE SET usd = charges.usd + excluded.usd",
            (f"settled\n{account}\n{model_id}", account, model_id, cost),
        )


class _Book:
    """Sums of an account: what is spent for good, and what living processes hold open."""

    def __init__(self, execute: Execute, account: str, lives: Callable[[str], bool]) -> None:
        self._spent: dict[str, float] = {}
        self._open: dict[str, float] = {}
        known: dict[str, bool] = {}
        for model_id, owner, usd in execute(
            "SELECT model_id, owner, sum(usd) FROM charges WHERE account = ? "
            "GROUP BY model_id, owner",
            (account,),
        ):
            if owner is not None and owner not in known:
                known[owner] = lives(owner)
            self.add(model_id, float(usd), is_open=bool(owner is not None and known[owner]))

    def add(self, model_id: str, usd: float, *, is_open: bool) -> None:
        book = self._open if is_open else self._spent
        book[model_id] = book.get(model_id, 0.0) + usd

    def fits(self, one: Charge, bounds: ChargeBounds) -> Granted:
        left, freed = float("inf"), float("inf")
        model = bounds.models.get(one.model_id)
        for bound, spent, held in (
            (model, self._spent.get(one.model_id, 0.0), self._open.get(one.model_id, 0.0)),
            (bounds.total, sum(self._spent.values()), sum(self._open.values())),
        ):
            if bound is not None:
                freed = min(freed, bound - spent)
                left = min(left, bound - spent - held)
        if one.usd <= left:
            return "yes"
        return "wait" if one.usd <= freed else "full"
