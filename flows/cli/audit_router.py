"""`routeyard audit router`: is a submission of predictions what it says?"""

from __future__ import annotations

from pathlib import Path

from routeyard.flows.cli.options import OptionalWrittenPath
from routeyard.flows.cli.results import Output


def command(
    predictions: Path,
    release: Path,
    scheme: str | None = None,
    arena: OptionalWrittenPath = None,
    reworded: Path | None = None,
) -> Output:
    """Check choices for leaks, constants, foreign prices, gaps and repeats (exit 0 or 3).

    Examples:

        routeyard audit router mine.csv yard/releases/demo/1.0.0

        routeyard audit router mine.csv RELEASE --arena mine-arena.json

        routeyard audit router mine.csv RELEASE --reworded mine-reworded.csv

    Args:
        predictions: CSV or Parquet: query_id, model_id and, if given, cost and tokens.
        arena: Also write RouterArena's layout here, if nothing fails; its score is read
            back off the file.
        reworded: What the router chose for the same questions in other words; the share that
            goes to the same model is RouterArena's robustness.
    """
    from routeyard.flows.evaluation.submission import audit_submission, robust

    found = audit_submission(predictions, release, scheme=scheme, arena=arena)
    if reworded is not None:
        found = [*found, robust(predictions, reworded)]
    failed = any(one.level == "fail" for one in found)
    lines = [f"{one.level:<5} {one.name}: {one.says}" for one in found]
    return Output(found, lines, exit_code=3 if failed else 0)
