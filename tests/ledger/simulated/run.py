"""Many schedules, what they met, and what broke."""

from __future__ import annotations

import gc
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from routeyard.pipelines.collect import runner as claims
from routeyard.pipelines.collect.ledger import Lease
from tests.ledger.simulated.ledgers import ModelOfPostgres, SimulatedSqlite, SqliteDatabase
from tests.ledger.simulated.world import HEARTBEAT_S, LEASE_S, World

DATABASES: dict[str, Callable[[], Any]] = {
    "sqlite": lambda: SqliteDatabase(SimulatedSqlite),
    "model": lambda: SqliteDatabase(ModelOfPostgres),
}


@dataclass
class Tally:
    """Schedules, faults in them by kind, calls, and by seed what broke."""

    schedules: int = 0
    paid: int = 0
    paid_again: int = 0
    happened: Counter[str] = field(default_factory=Counter)
    broken: dict[int, list[str]] = field(default_factory=dict)

    def text(self, seconds: float) -> str:
        faults = ", ".join(f"{count:,} {name}" for name, count in sorted(self.happened.items()))
        lines = [
            f"{self.schedules:,} schedules in {seconds:.0f} CPU-s: {self.paid:,} calls paid, "
            f"{self.paid_again:,} of them again, all excused by a fault: {not self.broken}",
            f"faults: {faults}",
            f"broken promises: {len(self.broken)}",
        ]
        for seed, said in list(self.broken.items())[:20]:
            lines.append(f"  seed {seed}: {'; '.join(said[:3])}")
        return "\n".join(lines)


def run(seeds: Iterable[int], databases: Sequence[Any]) -> Tally:
    """One schedule for each seed, on the databases in turn (by the seed)."""
    tally = Tally()
    with (
        mock.patch.object(Lease, "LEASE_S", LEASE_S),
        mock.patch.object(Lease, "HEARTBEAT_S", HEARTBEAT_S),
        # So that several processes have a part in few questions.
        mock.patch.object(claims, "CHUNK", 2),
        # A killed process's callbacks are dropped with it; Python says so each time.
        mock.patch.object(sys, "unraisablehook"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        # A collection in the middle of a schedule would end what an earlier one left.
        gc.disable()
        gc.freeze()  # collections look only at what schedules make
        for seed in seeds:
            world = World(seed, databases[seed % len(databases)])
            broken = world.run()
            tally.schedules += 1
            tally.paid += sum(world.paid.values())
            tally.paid_again += sum(times - 1 for times in world.paid.values())
            tally.happened.update(world.happened)
            if broken:
                tally.broken[seed] = broken
            world.tidy()
            if tally.schedules % 50 == 0:
                gc.collect()
        gc.collect()
        gc.enable()
    return tally
