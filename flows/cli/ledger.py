"""`routeyard ledger`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json


def command(
    place: Annotated[Path | None, typer.Argument(hidden=True)] = None,
    workspace: Annotated[Path, typer.Option(help="The workspace.")] = Path("yard"),
    as_json: Json = False,
) -> None:
    """Summarise what was asked and paid for: attempts, outcomes, tokens and USD per model.

    A cost that is not known is counted apart, never as zero.

    Example:

        routeyard ledger --workspace yard
    """
    from flows.cli.results import print_result
    from flows.workspace.ledgers import existing_ledger

    with existing_ledger(place or workspace) as ledger:
        rows = ledger.summary()
    if print_result(rows, as_json):
        return
    from rich.table import Table

    from flows.console import printer

    table = Table(box=None, pad_edge=False)
    for name in ("purpose", "model", "attempts", "ok", "truncated", "refused", "errors"):
        table.add_column(name, justify="left" if name in ("purpose", "model") else "right")
    for name in ("tokens in", "tokens out", "USD", "cost unknown", "last"):
        table.add_column(name, justify="right")
    for row in rows:
        usd = row["cost_usd"]
        counts = ("attempts", "ok", "truncated", "refused", "errors")
        table.add_row(
            row["purpose"],
            row["model_id"],
            *(f"{row[name]:,}" for name in counts),
            *("?" if row[n] is None else f"{row[n]:,}" for n in _TOKENS),
            "?" if usd is None else f"{usd:,.4f}",
            f"{row['cost_unknown']:,}",
            str(row["last"])[:19],
        )
    printer().print(table)


_TOKENS = ("prompt_tokens", "completion_tokens")
