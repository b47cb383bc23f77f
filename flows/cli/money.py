"""`routeyard reprice`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from routeyard.flows.cli.options import (
    YARD,
    OldPlace,
    OptionalWrittenPath,
    Output,
    Workspace,
    WrittenPath,
)

# `routeyard ledger`.


def ledger_command(place: OldPlace = None, workspace: Workspace = YARD) -> Output:
    """Summarise what was asked and paid for: attempts, outcomes, tokens and USD per model.

    A cost that is not known is counted apart, never as zero.

    Example:

        routeyard ledger --workspace yard
    """
    from routeyard.flows.ledgers import existing_ledger

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


# `routeyard prices`.


def prices_command(
    recipe: str,
    out: WrittenPath,
) -> Output:
    """Write today's prices of the providers' own lists to a dated file.

    A provider with `price_list: openrouter` is asked for its model list. Name the file in the
    recipe (`pool.prices`), so that a build never depends on the day it runs.

    Example:

        routeyard prices my_benchmark.yaml --out prices-2026-11.yaml

    Args:
        out: File to write (YAML); must be new.
    """
    from routeyard.flows.metering_audit import write_prices

    count = write_prices(recipe, out)
    text = f"{count} prices in {out}; set 'pool.prices: {out.name}' in the recipe"
    return Output({"prices": count, "path": out}, text)


def reprice_command(
    target: Path,
    prices: Annotated[Path, typer.Option()],
    date: str | None = None,
    out: OptionalWrittenPath = None,
) -> Output:
    """Recompute costs from another dated price table. Calls no model.

    The release or ledger stays as it is: `responses.parquet`, `models.parquet` and
    `reprice.json` are written beside it. A model the table does not list keeps its costs
    and is named; a cost without metered tokens is unknown. The folder is for looking, and no
    release: for a new version write the prices into the recipe, raise its version and build,
    which asks nothing again.

    The table is a CSV with the columns model_id, price_in, price_out (USD per million tokens)
    and price_date, or the same rows in YAML or JSON, as a list or under `prices:`.

    Examples:

        routeyard reprice yard/releases/demo/1.0.0 --prices prices-2026-11.yaml

        routeyard reprice yard --prices openrouter.json --date 2026-11-01

    Args:
        target: A release folder or a workspace.
        prices: Price table: YAML, JSON, CSV, or OpenRouter's list of models.
        date: Day the prices were read, where the table gives none.
        out: Folder to write (must be new).
    """
    from routeyard.flows.metering_audit import reprice_target

    done = reprice_target(target, prices, date, out)
    lines = []
    for row in done["models"]:
        before, after = (
            "unknown" if row[name] is None else f"${row[name]:,.4f}"
            for name in ("usd_before", "usd_after")
        )
        note = " (not in the table: kept)" if row["kept"] else f" ({row['price_date_after']})"
        unknown = f", {row['unknown_after']:,} unknown" if row["unknown_after"] else ""
        lines.append(f"{row['model_id']}: {before} → {after}{unknown}{note}")
    return Output(done, [*lines, done["path"]])
