"""The arithmetic of a budget: which bounds there are, and what is left of them."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest

from routeyard.pipelines.collect.budget import BudgetLedger, Price, worst_case
from routeyard.pipelines.collect.ledger import ChargeBounds
from routeyard.pipelines.collect.request import Request, RequestSettings
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.schemas.recipe.collect import Budget


@pytest.mark.parametrize(
    ("budget", "bounded", "left"),
    [
        (Budget(usd=2.0), (True, True), ChargeBounds(1.5, {"m": None})),
        (Budget(per_model_usd=1.0), (True, True), ChargeBounds(None, {"m": 0.75})),
        (Budget(models={"m": 0.5}), (True, False), ChargeBounds(None, {"m": 0.25})),
        (Budget(usd=2.0, per_model_usd=1.0), (True, True), ChargeBounds(1.5, {"m": 0.75})),
    ],
)
def test_what_was_spent_before_is_taken_off_each_bound(
    budget: Budget, bounded: tuple[bool, bool], left: ChargeBounds, tmp_path: Path
) -> None:
    with SqliteLedger(tmp_path / "l.sqlite") as ledger:
        budget = BudgetLedger(budget, ledger, "b")
        budget._before = {"m": 0.25, "n": 0.25}
        assert (budget._bounded("m"), budget._bounded("n")) == bounded
        assert budget._bounds("m") == left
        assert "raise 'collect.budget" in budget.full("m")


def test_only_a_model_with_a_bound_needs_a_worst_case(tmp_path: Path) -> None:
    async def fits(model: str) -> int:
        return len(
            await BudgetLedger(Budget(models={"n": 1.0}), ledger, "b").reserve_many(
                model, [math.inf]
            )
        )

    with SqliteLedger(tmp_path / "l.sqlite") as ledger:
        assert [asyncio.run(fits(model)) for model in ("m", "n")] == [1, 0]


def test_declared_tools_are_read_with_the_prompt() -> None:
    tools = [{"name": "é"}]
    request = Request("q", "m", RequestSettings("p", "/c", "m", {"tools": tools}), [], (0,), "hash")
    most = worst_case(request, Price(2.0, 0.0), 1)
    assert most == pytest.approx(len(str(tools).encode()) * 2 / 1e6)
