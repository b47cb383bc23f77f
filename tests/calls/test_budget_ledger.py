"""The arithmetic of a budget: what a call may cost at most, and who needs to know it."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest

from routeyard.pipelines.collect.budget import BudgetLedger, Price, worst_case
from routeyard.pipelines.collect.request import Request, RequestSettings
from routeyard.pipelines.collect.sqlite import SqliteLedger
from routeyard.schemas.recipe.collect import Budget


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
