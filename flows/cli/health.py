"""`routeyard health`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import WrittenPath
from routeyard.flows.cli.results import Output
from routeyard.schemas.near import SIMILARITY


def command(
    workspace_or_release: Path,
    out: WrittenPath,
    benchmark: str | None = None,
    encoder: str | None = None,
    threshold: float = SIMILARITY,
    trade_off: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    macro: Annotated[bool, typer.Option("--macro")] = False,
) -> Output:
    """Report how healthy a benchmark is: tasks, pool, duplicates, difficulty, coverage.

    Writes health.html (one page, no request to anywhere), health.md with plots/,
    and every table as Parquet. Reads only; calls no model.

    Examples:

        routeyard health yard --out report

        routeyard health yard/releases/demo/1.0.0 --out report --trade-off 0.5

    Args:
        workspace_or_release: A workspace (its last build is read) or a release folder.
        benchmark: Which benchmark of a workspace that holds several.
        encoder: Which embeddings, when there are several.
        threshold: Cosine of near-duplicates when no rule has found them yet.
        trade_off: λ: also show the pruning order.
        macro: Overall accuracy as the mean over tasks.
    """
    from routeyard.flows.audits.health import write_health

    page = write_health(
        workspace_or_release,
        out,
        benchmark=benchmark,
        encoder=encoder,
        threshold=threshold,
        trade_off=trade_off,
        weighting="task" if macro else "query",
    )
    return Output({"report": page}, str(page))
