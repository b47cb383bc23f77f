"""`routeyard ledger`."""

from __future__ import annotations

from typing import Any

from routeyard.flows.cli.options import YARD, OldPlace, Workspace
from routeyard.flows.cli.results import Output


def command(place: OldPlace = None, workspace: Workspace = YARD) -> Output:
    """Summarise what was asked and paid for: attempts, outcomes, tokens and USD per model.

    A cost that is not known is counted apart, never as zero.

    Example:

        routeyard ledger --workspace yard
    """
    from routeyard.flows.workspace.ledgers import existing_ledger

    with existing_ledger(place or workspace) as ledger:
        rows = ledger.summary()
    return Output(rows, lambda: _show(rows))


def _show(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from routeyard.flows.console import printer

    table = Table(box=None, pad_edge=False)
    for heading in ("purpose", "model"):
        table.add_column(heading)
    counts = {"attempts": "attempts", "ok": "ok", "truncated": "truncated", "refused": "refused",
              "errors": "errors", "tokens in": "prompt_tokens", "tokens out": "completion_tokens",
              "USD": "cost_usd", "cost unknown": "cost_unknown"}  # fmt: skip
    for heading in (*counts, "last"):
        table.add_column(heading, justify="right")
    for row in rows:
        cells = (_number(row[name], 4 if name == "cost_usd" else 0) for name in counts.values())
        table.add_row(row["purpose"], row["model_id"], *cells, str(row["last"])[:19])
    printer().print(table)


def _number(value: float | None, digits: int) -> str:
    return "?" if value is None else f"{value:,.{digits}f}"
