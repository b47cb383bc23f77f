"""`routeyard leaderboard`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from routeyard.flows.cli.options import OptionalWrittenPath
from routeyard.flows.cli.results import Output, write_csv


def command(
    results: list[Path],
    out: OptionalWrittenPath = None,
    metric: list[str] | None = None,
) -> Output:
    """One table from many evaluations, best accuracy first.

    Each accuracy is over so many of the test questions as `questions` says. Where labels are
    missing, the order is by `accuracy_floor`, which counts them as wrong.
    Each row says which result it is from, and of which release and split scheme that
    is. Rows of different ones stand side by side and cannot be compared.

    Example:

        routeyard leaderboard results/* --metric 'audc[usd]' --out board.csv

    Args:
        results: metrics.parquet files, or folders that hold one.
        out: Also write the whole table as CSV.
        metric: Column to show; again for more.
    """
    from routeyard.flows.console import line
    from routeyard.pipelines.errors import BadInput, did_you_mean
    from routeyard.pipelines.evaluate.run.leaderboards import read_leaderboard

    board, different = read_leaderboard(results)
    if len(different) > 1:
        line("note", f"rows of {' and '.join(different)} cannot be compared with each other")
    # Where labels are undecided, how far they could move each router.
    bounds = [name for name in ("accuracy_floor", "accuracy_ceiling") if name in board.column_names]
    shown = list(dict.fromkeys(["accuracy", *bounds, *(metric or [])]))
    for name in shown:
        if name not in board.column_names:
            raise BadInput(
                f"no result has the metric {name!r}",
                next_step=did_you_mean(name, board.column_names),
            )
    if out is not None:
        write_csv(board, out)
    width = max([7, *map(len, different)])
    return Output(board, _lines(board.to_pylist(), shown, width))


def _lines(rows: list[dict[str, Any]], shown: list[str], width: int) -> Iterator[str]:
    names = f"{'result':<24} {'release':<{width}} {'router':<28} {'questions':>16} "
    yield names + " ".join(f"{name:>18}" for name in shown)
    for row in rows:
        values = (f"{'–' if row[one] is None else f'{row[one]:.4f}':>18}" for one in shown)
        of = row["release"] or "–"
        over = row.get("questions") or "–"
        start = f"{row['result']:<24} {of:<{width}} {row['router']:<28} {over:>16}"
        yield f"{start} {' '.join(values)}"
