"""`routeyard reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import (
    CACHE,
    YARD,
    Resamples,
    WrittenPath,
    WrittenWorkspace,
    comma_list,
)
from routeyard.flows.cli.results import Output


def reproduce_command(
    paper: str,
    on: list[str] | None = None,
    data: Annotated[bool, typer.Option("--data")] = False,
    out: WrittenPath = Path("reproduced"),
    workspace: WrittenWorkspace = YARD,
    also: list[Path] | None = None,
    routers: str = "",
    encoders: str = "",
    search: bool | None = None,
    resamples: Resamples = 2_000,
    cache: Path = CACHE,
) -> Output:
    """Every table and figure of a paper beside its printed values, with a verdict per cell.

    A value on the paper's own data is `equal` (within the printed precision or the 95 % interval)
    or `differs`. What is missing is named per cell and the rest runs. Without releases the
    paper's recipes are rehearsed, which shows that everything runs.

    Examples:

        routeyard reproduce list

        routeyard reproduce confidence_router --out reproduced

        routeyard reproduce routing_plateau --on yard/releases/nine_by_30k/1.0.0 --out reproduced

    Args:
        paper: Paper; `list` names them.
        on: Release folder, or BENCHMARK=FOLDER; again for more.
        data: Build and use the recipes over ROUTEYARD_DATA that replace the paper's.
        out: Folder for page, JSON and studies; a run that was stopped goes on there.
        also: Tables beside the releases (descriptors, hidden states, tuned); again for more.
        routers: Of the paper's routers only these, commas between; all by default.
        encoders: Encoders of routers, commas between; the paper's that are here by default.
        search: The paper's search of settings and seeds, or each router's first setting, once;
            by default it searches on releases that are named.
    """
    from routeyard.papers import reproduce as papers

    if paper == "list":
        rows = papers.listed()
        return Output(
            rows,
            (
                f"{row['name']:<20} {row['printed']:>4} printed values in "
                f"{row['tables_and_figures']} tables and figures: {row['title']}"
                for row in rows
            ),
        )
    found = papers.reproduce(
        paper, on or (), data=data, out=out, workspace=workspace, also=also or (),
        routers=comma_list(routers), encoders=comma_list(encoders), search=search,
        resamples=resamples, cache=cache,
    )  # fmt: skip
    return Output(papers.as_json(found), papers.said(found, out))
