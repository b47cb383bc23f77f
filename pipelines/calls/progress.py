"""What a run knows of itself while it runs: one snapshot, for whoever shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from routeyard.pipelines.calls.reply import CallFault
from routeyard.pipelines.ledger.attempt import Attempt

_FIGURES = (
    "wanted", "before", "ok", "truncated", "refused", "failed", "permanent", "unanswered"
)  # fmt: skip


@dataclass
class Tally:
    """Counts of one model; `done` grows when an answer is durable."""

    wanted: int
    #: Answers that were there before this run.
    before: int = 0
    asked: int = 0
    in_flight: int = 0
    ok: int = 0
    truncated: int = 0
    refused: int = 0
    #: Pairs that ended as an error in this run.
    failed: int = 0
    #: Those of them that cannot succeed: nothing is missing any more.
    permanent: int = 0
    #: Those of them that were billed as often as the recipe allows, without an answer.
    unanswered: int = 0
    #: Pairs without an answer by what came back: where the model, the key or the address was
    #: refused, and where it may have been the question.
    set_up: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    #: Attempts that failed, by class.
    errors: Counter[str] = field(default_factory=Counter)
    spent_usd: float = 0.0
    #: Answers whose cost is not known.
    unpriced: int = 0
    #: Answered by another process meanwhile.
    elsewhere: int = 0
    #: Answers that another process asks for, where nothing but these is left to do.
    held: int = 0
    #: Why nothing more is asked of this model in this run.
    paused: str | None = None
    #: True where `paused` is the budget's doing.
    out_of_budget: bool = False
    #: What the budget is set aside for while calls wait for it; of one model of a run.
    waits: str | None = None

    def count(self, rows: Sequence[Attempt]) -> None:
        """Count attempts that are durable now."""
        for row in rows:
            if row.usable:
                setattr(self, row.status, getattr(self, row.status) + 1)
                self.unpriced += row.cost_usd is None
            self.spent_usd += row.cost_usd or 0.0

    def met(self, fault: CallFault) -> None:
        """Note a fault that asking again does not mend."""
        if fault.permanent:
            (self.set_up if fault.concerns else self.rejected)[fault.words] += 1

    def gave_up(self, rows: Sequence[Attempt], *, unanswered: bool = False) -> None:
        """Count pairs that end as an error in this run."""
        self.failed += len(rows)
        self.permanent += sum(row.permanent for row in rows)
        self.unanswered += len(rows) if unanswered else 0

    def figures(self) -> dict[str, Any]:
        """JSON-ready counts."""
        figures = {name: getattr(self, name) for name in _FIGURES}
        figures |= {"attempts": self.asked, "errors": dict(sorted(self.errors.items()))}
        return figures | {
            "spent_usd": self.spent_usd,
            "cost_unknown": self.unpriced,
            "paused": self.paused,
        }

    @property
    def left(self) -> int:
        """Answers that asking again may bring."""
        final = self.permanent if self.done else 0
        return max(0, self.wanted - self.done - final - self.unanswered)

    @property
    def refusal(self) -> str | None:
        """What came back where answers are missing by a fault of set-up.

        A model that refuses every question and has answered none refuses how it is asked.
        """
        met = self.set_up or (Counter() if self.done else self.rejected)
        return max(met, key=lambda words: met[words]) if met and self.left else None

    @property
    def done(self) -> int:
        return self.before + self.answered + self.elsewhere

    @property
    def answered(self) -> int:
        return self.ok + self.truncated + self.refused

    @property
    def missing(self) -> int:
        return max(0, self.wanted - self.done - self.failed)


@dataclass
class ModelProgress(Tally):
    """A model's counts in a snapshot, with its rate per second of this run and money in USD."""

    model_id: str = ""
    elapsed_s: float = 0.0

    @property
    def rate(self) -> float:
        return (self.answered + self.failed) / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def projected_usd(self) -> float | None:
        """Null while no answer of this run had a known cost."""
        priced = self.answered - self.unpriced
        return self.spent_usd + self.spent_usd / priced * self.missing if priced > 0 else None

    @property
    def eta_s(self) -> float | None:
        """Seconds to go; null when nothing has come yet."""
        if self.paused or (self.missing and not self.rate):
            return None
        return self.missing / self.rate if self.missing else 0.0


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The whole run at one moment."""

    elapsed_s: float
    models: tuple[ModelProgress, ...]
    finished: bool

    @property
    def wanted(self) -> int:
        return sum(model.wanted for model in self.models)

    @property
    def done(self) -> int:
        return sum(model.done for model in self.models)

    @property
    def spent_usd(self) -> float:
        return sum(model.spent_usd for model in self.models)


OnProgress = Callable[[RunProgress], None]


def snapshot(tallies: Mapping[str, Tally], elapsed_s: float, *, finished: bool) -> RunProgress:
    """Freeze the tallies (model_id → tally)."""
    models = (
        ModelProgress(
            **{**vars(tally), "errors": Counter(tally.errors)}, model_id=m, elapsed_s=elapsed_s
        )
        for m, tally in tallies.items()
    )
    return RunProgress(elapsed_s, tuple(models), finished)
