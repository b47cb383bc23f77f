"""Thousands of schedules of the real ledger, budget and workers, each repeatable by its seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from routeyard.pipelines.collect import ledger as held_lease
from routeyard.pipelines.collect.ledger import HeldLease, Lease, Ledger
from tests.ledger.simulated.ledgers import PostgresDatabase
from tests.ledger.simulated.run import DATABASES, Tally, run


@pytest.mark.parametrize("schedules", [200, pytest.param(2_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", DATABASES)
def test_schedules(name: str, schedules: int) -> None:
    tally = run(range(schedules), [DATABASES[name]()])
    print(tally.text(0))
    assert tally.broken == {}
    # Not by meeting nothing.
    assert tally.paid_again > schedules / 10
    assert all(
        tally.happened[kind] > schedules / 20
        for kind in ("kill", "stop longer than the lease", "machine asleep", "database fault")
    )


def test_schedules_on_a_real_postgresql(postgres: str) -> None:
    with PostgresDatabase(postgres) as database:
        tally = run(range(20), [database])
    assert tally.broken == {}
    # The model of PostgreSQL does the same.
    assert figures(tally) == figures(run(range(20), [DATABASES["model"]()]))


def figures(tally: Tally) -> Any:
    return tally.paid, tally.paid_again, tally.happened


def test_a_seed_gives_the_same_schedule_again() -> None:
    first, again = (run([7, 11], [DATABASES["sqlite"]()]) for _ in range(2))
    assert figures(first) == figures(again)


def always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


@pytest.mark.parametrize(
    ("where", "what", "put"),
    [
        # Who was stopped goes on without asking whether its lease still runs.
        (Ledger, "holds", always(True)),
        # Others may end a lease before its holder stops to rely on it.
        (Lease, "ends_after_s", always(1.0)),
        # The server's clock, or nothing, decides.
        (held_lease, "is_lapsed", lambda unmoved, silent: silent is not None and silent > 1.0),
        # The holder of a lease that was ended is never told.
        (HeldLease, "end", always(None)),
    ],
)
def test_faults_that_are_put_back_are_found(
    where: Any, what: str, put: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, what, put)
    tallies = (run(range(seed, seed + 20), [DATABASES["model"]()]) for seed in range(0, 300, 20))
    assert any("paid" in str(tally.broken) for tally in tallies)
