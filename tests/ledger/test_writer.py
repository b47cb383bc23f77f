"""Nobody who waits for the ledger, or no longer does, ends its writing thread."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from routeyard.pipelines.collect.budget import BudgetLedger, Tally
from routeyard.pipelines.collect.ledger import Charge, ChargeBounds
from routeyard.pipelines.collect.runner import AttemptWriter
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.schemas.recipe.collect import Budget
from tests.ledger.test_ledgers import BASE, KEY, append

FREE = ChargeBounds(None, {})


class Busy:
    """A ledger whose thread is at work until `go` is set."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self.go = threading.Event()
        ledger._group.submit(lambda _: self.go.wait(10))


def test_what_is_cancelled_is_not_done_and_holds_up_nobody(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    with SqliteLedger(path) as ledger, SqliteLedger(path) as other:
        busy = Busy(ledger)
        claim = ledger.claim([KEY], after=0)
        charge = ledger.charge("b", FREE, [Charge("c", "m", 1.0)], {})
        assert claim.cancel()
        assert charge.cancel()
        busy.go.set()
        # `flush` waited for ever: a cancelled call had ended the thread.
        ledger._group.submit(lambda _: None).result(5)
        assert ledger.charged("b") == {}
        assert other.claim([KEY], after=0).result(5).granted == [KEY]
        append(ledger, BASE)


def test_an_acknowledgement_that_raises_loses_nothing_and_is_told_at_the_end(
    tmp_path: Path,
) -> None:
    def raises(fault: BaseException | None) -> None:
        raise SystemExit("no")

    ledger = SqliteLedger(tmp_path / "l.sqlite")
    busy = Busy(ledger)
    ledger.append([BASE], settles=True, done=raises)
    told = threading.Event()
    # In the same commit, and in a later one.
    ledger.append([replace(BASE, sample=1)], settles=True, done=lambda fault: told.set())
    busy.go.set()
    assert told.wait(5)
    append(ledger, replace(BASE, sample=2))
    assert [one.sample for one in ledger.attempts()] == [0, 1, 2]
    with pytest.raises(SystemExit, match="no"):
        ledger.close()


def test_a_closed_loop_stops_no_commit(tmp_path: Path) -> None:
    # A second Ctrl-C closes the loop while answers wait for the disk.
    async def leave() -> None:
        keeping = AttemptWriter(ledger, None, lambda fault: None)
        keep = asyncio.ensure_future(keeping.keep([BASE], Tally(1), settles=True))
        await asyncio.sleep(0.01)
        keep.cancel()

    with SqliteLedger(tmp_path / "l.sqlite") as ledger:
        busy = Busy(ledger)
        asyncio.run(leave())
        busy.go.set()
        append(ledger, replace(BASE, sample=1))
        assert [one.sample for one in ledger.attempts()] == [0, 1]


def test_a_cancelled_reservation_is_given_back_and_takes_nothing_along(tmp_path: Path) -> None:
    async def story() -> None:
        budget = BudgetLedger(Budget(usd=10.0), ledger, "b")
        first = await budget.reserve("m", 4.0)
        assert first is not None
        await budget.settle(first, 1.0)
        busy = Busy(ledger)
        second = asyncio.ensure_future(budget.reserve("m", 2.0))
        await asyncio.sleep(0.05)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        busy.go.set()
        await budget.close()

    with SqliteLedger(tmp_path / "l.sqlite") as ledger:
        asyncio.run(story())
        ledger._group.submit(lambda _: None).result(5)
        assert ledger.charged("b") == {"m": 1.0}
