"""A budget holds over runs, processes and kills, whatever a provider says a call cost."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from routeyard.pipelines.collect.budget import (
    TEMPLATE_TOKENS,
    BudgetLedger,
    Price,
    counted,
    worst_case,
)
from routeyard.pipelines.collect.ledger import Charge, ChargeBounds
from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.reply import Usage
from routeyard.pipelines.collect.request import Request, RequestSettings
from routeyard.pipelines.collect.runner import RunResult
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.errors import RecipeError
from routeyard.schemas.recipe.collect import Budget, Collect, Retry
from tests.calls.asking import ask, pool_of, table
from tests.calls.loopback import Loopback, answer, completion
from tests.calls.test_budget import PRICE_IN, PRICE_OUT, Billing, models

LIMIT = 1.0


def build(server: Loopback, ledger: SqliteLedger, name: str, usd: float = LIMIT) -> RunResult:
    """One build of a benchmark of that name, with questions that no other build asked."""
    settings = {"max_tokens": 50, "budget": Budget(usd=usd), "retry": Retry(attempts=2)}
    prompts = [f"{i}" for i in range(200)]
    return ask(ledger, pool_of(server, *models(1)), prompts, benchmark=name, **settings).ended


def test_the_same_command_does_not_spend_it_again(tmp_path: Path) -> None:
    bill = Billing()
    with Loopback(bill) as server:
        for _ in range(4):
            with SqliteLedger(tmp_path / "l.sqlite") as ledger:
                ended = build(server, ledger, "b")
                assert ended.out_of_budget
                assert "raise 'collect.budget.usd'" in ended.paused["m0"]
        assert 0.5 * LIMIT < sum(bill.usd.values()) <= LIMIT
        with SqliteLedger(tmp_path / "l.sqlite") as ledger:
            # Another benchmark has a budget of its own, and a higher one goes on.
            build(server, ledger, "b", usd=1.5)
            assert LIMIT < sum(bill.usd.values()) <= 1.5


def test_two_builds_at_once_share_it(tmp_path: Path) -> None:
    bill = Billing()
    with Loopback(bill) as server:

        def one() -> None:
            with SqliteLedger(tmp_path / "l.sqlite") as ledger:
                build(server, ledger, "b")

        both = [threading.Thread(target=one) for _ in range(3)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
    assert 0.5 * LIMIT < sum(bill.usd.values()) <= LIMIT


def test_what_runs_without_a_budget_spent_counts_as_well(tmp_path: Path) -> None:
    with Loopback(Billing()) as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        free = {"max_tokens": 50, "retry": Retry(attempts=2)}
        ask(ledger, pool_of(server, *models(1)), ["free"], benchmark="b", **free)
        spent = sum(row["cost_usd"] or 0 for row in ledger.summary())
        asked = server.requests
        ended = build(server, ledger, "b", usd=spent + 0.01 if spent else 0.01)
        assert ended.out_of_budget
        assert server.requests == asked


def test_a_provider_that_says_it_costs_nothing_is_not_believed(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 40, "total_tokens": 70, "cost": 0}
    real = (30 * PRICE_IN + 40 * PRICE_OUT) / 1e6
    with (
        Loopback(lambda body, seen: answer(completion("x", usage=usage))) as server,
        SqliteLedger(tmp_path / "l.sqlite") as ledger,
    ):
        ended = build(server, ledger, "b")
        assert ended.out_of_budget
        assert server.requests * real <= LIMIT


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(10, 10, cost_usd=0.0), 20e-6),
        (Usage(10, 10, cost_usd=1.0), 1.0),
        (Usage(10, None, cost_usd=0.0), None),  # so a text of no tokens is read
        (Usage(None, None, cost_usd=0.0), None),
    ],
)
def test_what_a_budget_counts(usage: Usage, expected: float | None) -> None:
    assert counted(usage, Price(1.0, 1.0)) == (expected and pytest.approx(expected))


@pytest.mark.parametrize(
    "given",
    [
        {"models": {"m": -5}},
        {"models": {"m": 0}},
        {"models": {"m": float("nan")}},
        {"models": {"m": True}},
        {"usd": -5},
        {"per_model_usd": -0.01},
    ],
)
def test_a_bound_that_is_no_amount_is_refused(given: dict[str, Any]) -> None:
    # `models: {m: -5}` was loaded.
    with pytest.raises(ValidationError):
        Budget(**given)


def test_a_bound_for_an_unknown_model_is_refused() -> None:
    pool = pool_of("http://127.0.0.1:9", *models(2))
    wrong = Collect(max_tokens=5, budget=Budget(models={"m7": 1.0}))
    with pytest.raises(RecipeError, match="'m7'"):
        plan(table(["q"]), pool, wrong, None)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_charges(kind: str, tmp_path: Path, request: Any) -> None:
    if kind == "sqlite":
        ledger: Any = SqliteLedger(tmp_path / "l.sqlite")
    else:
        from routeyard.pipelines.collect.postgres import PostgresLedger

        ledger = PostgresLedger(request.getfixturevalue("postgres"))
    with ledger:
        bounds = ChargeBounds(1.0, {"m": 0.8})

        def ask(*wanted: Charge, settled: dict[str, float | None] | None = None) -> list[str]:
            return list(ledger.charge("b", bounds, wanted, settled or {}).result(20))

        assert ask(Charge("1", "m", 0.5), Charge("2", "m", 0.5), Charge("3", "m", 0.9)) == [
            "yes",
            "wait",
            "full",
        ]
        assert ledger.charged("b") == {"m": 0.5}
        # What is settled twice counts once; what is not known stays.
        assert ask(settled={"1": 0.1}) == []
        assert ask(settled={"1": 0.1}) == []
        assert ledger.charged("b") == {"m": pytest.approx(0.1)}
        assert ask(Charge("4", "m", 0.4)) == ["yes"]
        ask(settled={"4": None})
        assert ledger.charged("b") == {"m": pytest.approx(0.5)}
        assert ask(Charge("5", "m", 0.4)) == ["full"]
        assert ledger.charged("other") == {}


def test_what_is_settled_last_is_written_when_a_run_ends(tmp_path: Path) -> None:
    async def one_call(budget: BudgetLedger) -> None:
        charge = await budget.reserve("m", 0.5)
        assert charge
        await budget.settle(charge, 0.1)
        await budget.close()

    with SqliteLedger(tmp_path / "l.sqlite") as ledger:
        asyncio.run(one_call(BudgetLedger(Budget(usd=1.0), ledger, "b")))
        assert ledger.charged("b") == {"m": pytest.approx(0.1)}


def test_a_call_that_waits_to_be_sent_holds_no_money(tmp_path: Path) -> None:
    held: list[int] = []
    places = 2
    with SqliteLedger(tmp_path / "l.sqlite") as ledger:

        def answers(body: Any, seen: Any) -> Any:
            held.append(ledger.set_aside("b")[0])
            time.sleep(0.01)
            return answer(completion("x"))

        with Loopback(answers) as server:
            pool = pool_of(server, *models(3), limits={"concurrency": places})
            settings = {"max_tokens": 50, "budget": Budget(usd=5.0)}
            prompts = [f"{i}" for i in range(30)]
            assert ask(ledger, pool, prompts, benchmark="b", **settings).ended.complete
    # A kill leaves these: what is being asked, and what was answered since the last call.
    assert max(held) <= 2 * places


def test_a_run_that_asks_nothing_more_holds_no_money(tmp_path: Path) -> None:
    # One build waited for the other's claims, the other for charges that the first had
    # settled and told nobody of: both for ever.
    async def both() -> str | None:
        with (
            SqliteLedger(tmp_path / "l.sqlite") as first,
            SqliteLedger(tmp_path / "l.sqlite") as second,
        ):
            idle, waiting = (
                BudgetLedger(Budget(usd=1.0), first, "b"),
                BudgetLedger(Budget(usd=1.0), second, "b"),
            )
            charge = await idle.reserve("m", 0.9)
            assert charge is not None
            await idle.settle(charge, 0.1)  # and then nothing: no ask, no close
            async with asyncio.timeout(20):
                return await waiting.reserve("m", 0.5)

    assert asyncio.run(both())


def test_the_worst_case_of_a_call_is_every_byte_a_token_and_all_that_it_may_answer() -> None:
    said = [{"role": "user", "content": "é" * 10}, {"role": "system", "content": ""}]
    request = Request("q", "m", RequestSettings("p", "/c", "m", {}), said, (0, 1, 2), "hash")
    prompt = sum(len(str(one).encode()) for one in said) + 2 * TEMPLATE_TOKENS
    price = Price(2.0, 3.0)
    assert worst_case(request, price, 100) == pytest.approx((prompt * 2 + 3 * 100 * 3) / 1e6)
    # What cannot be known has no bound: no length, or no price.
    assert worst_case(request, price, None) == math.inf
    assert worst_case(request, Price(2.0, None), 100) == math.inf


@pytest.mark.parametrize(
    ("budget", "by", "said"),
    [
        (Budget(usd=2.0), "collect.budget", "2 USD ('usd') for all"),
        (Budget(usd=2.0), "collect.budget", "raise 'collect.budget.usd'"),
        (Budget(per_model_usd=1.5), "collect.budget", "raise 'collect.budget.per_model_usd'"),
        (Budget(models={"m": 0.5}), "collect.budget", "raise 'collect.budget.models.m'"),
        # The model's own bound stands in for that of every model.
        (
            Budget(usd=2.0, per_model_usd=1.0, models={"m": 0.5}),
            "collect.budget",
            "0.5 USD ('models.m') and 2 USD ('usd')",
        ),
        (Budget(usd=2.0, per_model_usd=1.0), "collect.budget", "raise 'collect.budget' to go on"),
        (Budget(usd=2.0), "label.judges.j.budget_usd", "raise 'label.judges.j.budget_usd'"),
    ],
)
def test_a_full_budget_says_which_bound_and_how_to_raise_it(
    budget: Budget, by: str, said: str, tmp_path: Path
) -> None:
    with SqliteLedger(tmp_path / "l.sqlite") as ledger:
        assert said in BudgetLedger(budget, ledger, "b", raise_by=by).full("m")
