"""`routeyard recipe check`."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli.options import Json


def command(
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of one that ships.")],
    as_json: Json = False,
) -> None:
    """Say all faults of a recipe at once, each with its line. Exits 2 when there are any.

    Keys and values, rules and scorers, the pool file, and local sources: a file that is
    not there, a column that does not exist, a `where` that matches nothing. Recorded answers
    are read as a build reads them: columns that no row has and models that are not in the
    pool, of all recordings; then, once these and the questions are right, ids that match no
    question or stand twice, and what the metering audit would stop. Hub datasets and providers
    are not asked.

    Example:

        routeyard recipe check my_benchmark.yaml
    """
    from flows.cli.results import print_result
    from flows.recipe_check import faults

    notes: list[str] = []
    found = faults(recipe, notes)
    if not print_result(found, as_json):
        for note in notes:
            print(f"note: {note}")
        for fault in found:
            print(fault)
        counted = f"{len(found)} fault" + ("s" if len(found) != 1 else "")
        print(f"{recipe}: {counted if found else 'no fault'}")
    if found:
        raise typer.Exit(2)
