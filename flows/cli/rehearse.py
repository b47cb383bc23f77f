"""`routeyard rehearse`."""

from __future__ import annotations

from typing import Annotated

import typer

from routeyard.flows.cli.options import YARD, WrittenWorkspace
from routeyard.flows.cli.results import Output


def command(
    recipe: str,
    workspace: WrittenWorkspace = YARD,
    copies: Annotated[int, typer.Option(min=1)] = 3,
    real: bool = False,
) -> Output:
    """Build a recipe end to end from fixture rows and a pool on loopback, at no cost.

    Rows written for Routeyard in each dataset's own layout replace the datasets, one local
    server plays every model, verifier and judge, and EmbedLLM is planted. The release is called
    `<recipe>-rehearsal` and its card says what it is. With --real a real small model on this
    machine answers, which takes about half a second a call.

    Example:

        routeyard rehearse nine_by_30k --workspace yard

    Args:
        copies: Variants asked of each fixture row.
        real: A real small model answers in place of the pool's (docs/howto/real_model.md).
    """
    from routeyard.flows.console.summary import show_build
    from routeyard.flows.rehearse import rehearse

    summary = rehearse(recipe, str(workspace), copies=copies, real=real)
    return Output(summary, lambda: show_build(summary))
