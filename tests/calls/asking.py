"""Prompts asked of servers through a plan and a ledger, and the rows that came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from routeyard.pipelines.collect.collect import collect, responses_table
from routeyard.pipelines.collect.ledger import Ledger
from routeyard.pipelines.collect.plan import Plan, plan
from routeyard.pipelines.collect.runner import RunResult
from routeyard.schemas.recipe.collect import CollectAgain
from routeyard.schemas.recipe.pool import Model, Pool, Provider
from tests.calls.loopback import Loopback


@dataclass(frozen=True)
class Asked:
    """A plan, how its run ended, and its responses."""

    plan: Plan
    ended: RunResult
    rows: list[dict[str, Any]]

    def column(self, name: str) -> list[Any]:
        return [row[name] for row in self.rows]


def table(prompts: Sequence[str]) -> pa.Table:
    """Questions that are called as they are asked."""
    return pa.table(
        {"query_id": prompts, "task": ["t"] * len(prompts), "prompt": prompts},
        schema=pa.schema([(n, pa.string()) for n in ("query_id", "task", "prompt")]),
    )


def pool_of(at: Loopback | str, *models: Model, **provider: Any) -> Pool:
    """The models, or one called `m`, at a server or an address."""
    url = at if isinstance(at, str) else at.base_url
    providers = [Provider(**{"name": "p", "base_url": url} | provider)]
    return Pool(models=[*models] or [Model(model_id="m")], providers=providers)


def ask(
    ledger: Ledger,
    pool: Pool,
    prompts: Sequence[str] | pa.Table = ("q",),
    *,
    benchmark: str = "",
    **settings: Any,
) -> Asked:
    """What a run with these settings of `collect` brings."""
    asked = prompts if isinstance(prompts, pa.Table) else table(list(prompts))
    made = plan(asked, pool, CollectAgain(**settings), ledger, benchmark=benchmark)
    ended = collect(made, ledger)
    return Asked(made, ended, responses_table(made, ledger).to_pylist())
