"""What a build would ask and cost: reads sources and the ledger, calls no model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flows.demo.serve import surroundings
from flows.recipe import load, with_collect
from flows.stages.ingest import ingest_task, pool_task
from flows.tracking.run import call
from flows.workspace.ledgers import ledger_exists
from flows.workspace.shares import open_ledger
from flows.workspace.tables import read
from pipelines.collect.plan import plan


def plan_build(
    recipe: str, workspace: str, collect: dict[str, Any] | None = None
) -> dict[str, Any]:
    """JSON-ready plan: questions, and per model calls, tokens and USD still to spend.

    Unknown figures are null. For recorded responses there is nothing to ask.
    """
    checked, base = load(recipe)
    checked = with_collect(checked, collect or {})
    root = Path(workspace).absolute()
    with surroundings(checked.name, root, serve=False):
        queries = call(ingest_task, recipe=checked, base=str(base), root=str(root))
        pool = call(pool_task, recipe=checked, root=str(root))
    said: dict[str, Any] = {
        "benchmark": checked.name,
        "version": checked.version,
        "provider": checked.collect.provider,
        "queries": queries.figures["queries"],
        "models_in_pool": pool.figures["models"],
        "released": (root / "releases" / checked.name / checked.version).is_dir(),
    }
    if checked.collect.provider == "recorded":
        return {**said, "calls": 0, "cost_usd": 0.0, "models": []}
    table = read(queries, "queries")
    if not ledger_exists(root):
        return {**said, **plan(table, checked.pool, checked.collect, None).figures()}
    with open_ledger(root) as ledger:
        return {**said, **plan(table, checked.pool, checked.collect, ledger).figures()}


def show(said: dict[str, Any]) -> None:
    """Print a plan for a person."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(
        f"{said['benchmark']} {said['version']}: {said['queries']:,} questions x "
        f"{said['models_in_pool']} models"
    )
    if said["provider"] == "recorded":
        console.print("responses are recorded: nothing will be asked")
        return
    table = Table()
    table.add_column("model")
    for heading in ("wanted", "there", "calls", "prompt tokens", "completion tokens", "USD"):
        table.add_column(heading, justify="right")
    for row in said["models"]:
        error = row["prompt_tokens_error"]
        table.add_row(
            row["model_id"],
            f"{row['wanted']:,}",
            f"{row['settled']:,}",
            f"{row['calls']:,}",
            _known(row["prompt_tokens"]) + (f" ±{100 * error:.0f} %" if error else ""),
            _known(row["completion_tokens"]),
            "unknown" if row["cost_usd"] is None else f"{row['cost_usd']:.4f}",
        )
    console.print(table)
    cost, worst = said["cost_usd"], said["worst_cost_usd"]
    about = "unknown (a price is missing)" if cost is None else f"about {cost:.4f} USD"
    console.print(
        f"{said['calls']:,} calls, cost {about}"
        + ("" if worst is None else f", at most {worst:.4f} USD")
    )


def _known(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f}"
