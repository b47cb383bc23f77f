"""`routeyard recipe check`."""

from __future__ import annotations

from routeyard.flows.cli.results import Output


def command(recipe: str) -> Output:
    """List all faults of a recipe at once, each with its line. Exits 2 when there are any.

    Keys and values, rules and scorers, the pool file, and local sources: a file that is
    not there, a column that does not exist, a `where` that matches nothing. Recorded answers
    are read as a build reads them: columns that no row has and models that are not in the
    pool, of all recordings; then, once these and the questions are right, ids that match no
    question or occur twice, and what the metering audit would stop. Hub datasets and providers
    are not asked.

    Example:

        routeyard recipe check my_benchmark.yaml
    """
    from routeyard.flows.recipe_check import faults

    notes: list[str] = []
    found = faults(recipe, notes)
    counted = f"{len(found)} fault{'s' if len(found) > 1 else ''}" if found else "no fault"
    lines = [*(f"note: {note}" for note in notes), *map(str, found), f"{recipe}: {counted}"]
    return Output(found, lines, exit_code=2 if found else 0)
