"""`routeyard reprice`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import OptionalWrittenPath
from routeyard.flows.cli.results import Output


def command(
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
    from routeyard.flows.audits.reprice import reprice_target

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
