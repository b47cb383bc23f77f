"""What waits for a place, a rate or another's claim, and who follows what is stored."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.collect.budget import BudgetLedger, Price, Tally
from routeyard.pipelines.collect.client import TimedReply
from routeyard.pipelines.collect.collect import acollect, collect
from routeyard.pipelines.collect.ledger import Attempt
from routeyard.pipelines.collect.plan import Plan, plan
from routeyard.pipelines.collect.reply import CallFault
from routeyard.pipelines.collect.request import CHAT_COMPLETIONS, Request, RequestSettings
from routeyard.pipelines.collect.runner import Claims, Gate, ModelQueue, ModelWorker, RequestRun
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.errors import DiskFull
from routeyard.schemas.recipe.collect import Budget, Collect, RateLimits, Retry
from routeyard.schemas.recipe.pool import Model, Pool, Provider
from tests.calls.collecting import pool, queries
from tests.calls.loopback import Do, Loopback, answer, completion

PLACES = 2


def planned(server: Loopback, ledger: SqliteLedger, usd: float | None = None) -> Plan:
    """Four models of three calls at once, before a provider with two places."""
    prices = {"price_in": 1.0, "price_out": 1.0, "price_date": "2026-11-01"}
    limits = RateLimits(concurrency=PLACES)
    made = Pool(
        models=[Model(model_id=f"m{i}", **prices) for i in range(4)],
        providers=[Provider(name="p", base_url=server.base_url, limits=limits)],
    )
    how = Collect(limits=RateLimits(concurrency=3), max_tokens=50, budget=Budget(usd=usd))
    return plan(queries(12), made, how, ledger, benchmark="b")


def test_a_full_disk_asks_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, asked = SqliteLedger._commit, []

    def full(self: SqliteLedger, group: Any) -> None:
        if server.requests > 16:
            asked.append(server.requests)
            raise DiskFull("the disk is full")
        commit(self, group)

    monkeypatch.setattr(SqliteLedger, "_commit", full)
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    with Loopback(lambda body, seen: answer(completion("1"))) as server:
        with pytest.raises(DiskFull):
            collect(planned(server, ledger), ledger)
        kept = sum(row["attempts"] for row in ledger.summary())
        # Each answer that could not be kept let the next one through: all 48 were asked.
        assert server.requests <= kept + PLACES
        assert server.requests <= asked[0] + 1
    with pytest.raises(DiskFull):
        ledger.close()


def test_ctrl_c_waits_for_what_was_asked_and_asks_nothing_more(tmp_path: Path) -> None:
    def behave(body: dict[str, Any], seen: int) -> Do:
        # Both places are taken until after the interruption.
        return answer(completion("1"), delay=0.2 if server.requests in (17, 18) else 0.0)

    async def interrupted() -> int:
        run = asyncio.ensure_future(acollect(made, ledger))
        while server.requests < 16 + PLACES:
            await asyncio.sleep(0.002)
        asked = server.requests
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        return asked

    with Loopback(behave) as server, SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        made = planned(server, ledger, 1.0)
        asked = asyncio.run(interrupted())
        rows = ledger.summary()
        assert server.requests == asked == sum(row["ok"] for row in rows) == 16 + PLACES
        # What was set aside for calls that waited is free again, for this and every later run.
        spent = sum(row["cost_usd"] for row in rows)
        assert sum(ledger.charged("b").values()) == pytest.approx(spent)
        # All that was not asked is missing, and free to be asked.
        again = planned(server, ledger, 1.0)
        assert sum(int(model.missing.sum()) for model in again.models) == 48 - asked
        assert collect(again, ledger).complete
        assert server.requests == 48


class Unwell:
    """A transport that fails, and counts."""

    streams = False
    asked = 0

    async def complete(self, path: str, body: Mapping[str, Any]) -> TimedReply:
        self.asked += 1
        raise CallFault("http_500", "no", status=500)

    async def __aenter__(self) -> Unwell:
        return self

    async def __aexit__(self, *_: object) -> None: ...


REQUEST = Request("q", "m", RequestSettings("p", "/c", "m", {}), [], (0, 1), "hash", 2500)


def begun(ledger: SqliteLedger, budget: BudgetLedger) -> tuple[RequestRun, ModelWorker, Unwell]:
    """A run and a worker that holds its one place; 1000 tokens a second per model and provider."""
    run = RequestRun(ledger, 0, "r", "collect", Retry(first_wait_s=0.01), budget, None)
    provider = Provider(name="p", base_url="http://127.0.0.1:1/v1")
    queue = ModelQueue("m", provider, iter(()), 2, price=Price(1.0, 1.0), max_tokens=50)
    limits = RateLimits(concurrency=1, tokens_per_minute=60_000)
    queue.limits = limits
    wire = Unwell()
    worker = ModelWorker(run, queue, wire, Gate(limits, adaptive=False))
    worker.gate.window.in_flight = 1
    return run, worker, wire


@pytest.mark.parametrize("end", ["paused", "stopped", "stopped at a rate"])
def test_who_is_not_asked_any_more_leaves_no_trace(tmp_path: Path, end: str) -> None:
    async def story() -> None:
        budget = BudgetLedger(Budget(usd=1.0), ledger, "b")
        run, worker, wire = begun(ledger, budget)
        await worker.provider.window.enter()
        if end == "stopped at a rate":
            worker.provider.hold(20.0)
        call = asyncio.ensure_future(worker.send(REQUEST))
        while not (worker.tally.in_flight and (worker.provider.window._waiting or "rate" in end)):
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.02)
        assert ledger.charged("b") == {}  # what waits for a place holds no money
        worker.pause("failed") if end == "paused" else run.stop("interrupted")
        if end == "stopped at a rate":
            await asyncio.wait_for(call, 1)  # it does not wait the 20 s
        worker.provider.window.leave()
        await call
        tally, gates = worker.tally, (worker.gate, worker.provider)
        assert (wire.asked, tally.asked, tally.in_flight) == (0, 0, 0)
        assert (tally.failed, tally.missing, tally.left) == (0, 2, 2)
        # Places and tokens are there for whoever is still asked.
        assert [gate.window.in_flight for gate in gates] == [0, 0]
        worker.provider.not_before = 0.0
        assert max(gate.delay(1000) for gate in gates) < 0.1
        await budget.close()

    with SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        asyncio.run(story())
        assert sum(ledger.charged("b").values()) == 0.0


def test_a_pair_that_failed_and_is_not_asked_again_counts_as_failed(tmp_path: Path) -> None:
    # As it does when the run ends while the pair sleeps before its next attempt.
    async def story() -> None:
        _run, worker, wire = begun(ledger, BudgetLedger(Budget(), ledger))
        one = replace(REQUEST, samples=(0,), tokens_expected=10)
        call = asyncio.ensure_future(worker.send(one))
        while not worker.tally.errors:
            await asyncio.sleep(0)
        await worker.provider.window.enter()
        await asyncio.sleep(0.1)
        worker.pause("failed")
        worker.provider.window.leave()
        await call
        assert (wire.asked, worker.tally.failed, worker.tally.left) == (1, 1, 2)

    with SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        asyncio.run(story())


# The first says nothing: a run must not take that for "not stopped".
@pytest.mark.parametrize("error", [ValueError(), OSError("pipe closed"), SystemExit(3)])
def test_what_it_raises_ends_the_run_and_is_raised(tmp_path: Path, error: BaseException) -> None:
    calls, ended = [], []

    def stored(rows: Sequence[Attempt]) -> None:
        calls.append(rows)
        if len(calls) == 5:
            raise error

    def run() -> None:
        try:
            collect(made, ledger, on_stored=stored)
        except BaseException as fault:
            ended.append(fault)

    with (
        Loopback(lambda body, seen: answer(completion("1"))) as server,
        SqliteLedger(tmp_path / "l.sqlite") as ledger,
    ):
        made = plan(
            queries(40), pool(server.base_url, 1), Collect(limits=RateLimits(concurrency=2)), ledger
        )
        # It waited for ever.
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(10)
        assert ended == [error]
        # Nothing more was asked, and what was is kept: only the rest is asked again.
        kept = sum(row["ok"] for row in ledger.summary())
        assert server.requests == kept <= 5 + 2
        again = plan(queries(40), pool(server.base_url, 1), Collect(), ledger)
        assert collect(again, ledger).complete
        assert server.requests == 40


SETTINGS = RequestSettings("p", CHAT_COMPLETIONS, "m", {})


def request(number: int) -> Request:
    messages = [{"role": "user", "content": f"q{number}"}]
    name = SETTINGS.request_hash(messages)
    return Request(f"q{number}", "m", SETTINGS, messages, (0,), name)


def test_what_others_hold_is_counted_while_it_is_waited_for(tmp_path: Path) -> None:
    wanted = [request(number) for number in range(5)]
    tally = Tally(wanted=5)
    path = tmp_path / "l.sqlite"
    with SqliteLedger(path) as other, SqliteLedger(path) as ours:
        theirs = [key for one in wanted[:2] for key in one.keys]
        assert other.claim(theirs, after=0).result().granted
        waited: list[int] = []

        async def sleep(seconds: float) -> None:
            waited.append(tally.held)
            other.release(theirs)
            other.flush()

        async def all_of_them() -> list[str]:
            claims = Claims(ours, 0, tally, lambda: False, sleep)
            return [one.query_id async for one in claims.each(iter(wanted))]

        assert asyncio.run(all_of_them()) == ["q2", "q3", "q4", "q0", "q1"]
    assert waited == [2]
    assert tally.held == 0
