"""The budget, by the server's own count: it never bills more than the limit."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from routeyard.pipelines.collect.plan import plan
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.pipelines.common.errors import RecipeError
from routeyard.schemas.recipe.collect import Budget, Collect, Retry
from routeyard.schemas.recipe.pool import Model
from tests.calls.asking import ask, pool_of, table
from tests.calls.loopback import Do, Loopback, answer, completion, error

PRICE_IN, PRICE_OUT = 100.0, 1000.0


class Billing:
    """Bills every request it worked on, also those whose answer never arrives."""

    def __init__(self) -> None:
        self.usd: dict[str, float] = {}
        self.randomly = random.Random(1)

    def __call__(self, body: dict[str, Any], seen: int) -> Do:
        prompt = len(body["messages"][0]["content"].encode()) + 10
        tokens = self.randomly.randrange(1, body["max_tokens"] + 1)
        kind = self.randomly.random()
        if kind < 0.05:
            return error(429)
        cost = (prompt * PRICE_IN + tokens * PRICE_OUT) / 1e6
        self.usd[body["model"]] = self.usd.get(body["model"], 0.0) + cost
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": tokens,
            "total_tokens": prompt + tokens,
        }
        if kind < 0.08:
            return answer(completion(usage=usage), cut=20)
        if kind < 0.10:
            return error(500)
        if kind < 0.12:
            return answer(completion(usage=None))
        return answer(completion("x", usage=usage), delay=0.01)


def models(n: int = 3, **changes: Any) -> list[Model]:
    known = {"price_in": PRICE_IN, "price_out": PRICE_OUT, "price_date": "2026-01-01"} | changes
    return [Model(model_id=f"m{i}", **known) for i in range(n)]


@pytest.mark.parametrize(
    "budget",
    [
        Budget(usd=3.0),
        Budget(per_model_usd=0.7),
        Budget(usd=2.0, models={"m1": 0.3}),
        Budget(usd=0.01),
    ],
)
def test_the_server_never_bills_more_than_the_budget(tmp_path: Path, budget: Budget) -> None:
    bill = Billing()
    settings = {"max_tokens": 50, "budget": budget, "deadline_s": 10}
    with Loopback(bill) as server, SqliteLedger(tmp_path / "l.sqlite") as ledger:
        prompts = [f"question {i}" for i in range(200)]
        retry = Retry(attempts=3, first_wait_s=0.0)
        pool = pool_of(server, *models())
        collected = ask(ledger, pool, prompts, retry=retry, **settings).ended
    assert not collected.complete
    assert all("budget" in why for why in collected.paused.values())
    if budget.usd is not None:
        assert sum(bill.usd.values()) <= budget.usd
        if budget.usd >= 1 and not budget.models:
            # Not by asking nothing: most of it is used.
            assert sum(bill.usd.values()) > 0.5 * budget.usd
    for model, usd in bill.usd.items():
        assert usd <= budget.models.get(model, budget.per_model_usd or float("inf"))


@pytest.mark.parametrize(
    ("changes", "settings", "message"),
    [
        ({"price_out": None}, {"max_tokens": 5}, "price"),
        ({}, {}, "longest answer"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused(
    changes: dict[str, Any], settings: dict[str, Any], message: str
) -> None:
    pool = pool_of("http://127.0.0.1:9", *models(1, **changes))
    with pytest.raises(RecipeError, match=message):
        plan(table(["q"]), pool, Collect(budget=Budget(usd=1), **settings), None)
