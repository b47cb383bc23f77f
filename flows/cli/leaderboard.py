"""`routeyard leaderboard`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json, sealed_off


def command(
    results: Annotated[
        list[Path], typer.Argument(help="metrics.parquet files, or folders that hold one.")
    ],
    out: Annotated[
        Path | None, typer.Option(callback=sealed_off, help="Also write the whole table as CSV.")
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Column to show; again for more.")
    ] = None,
    as_json: Json = False,
) -> None:
    """One table from many evaluations, best accuracy first.

    Each row says which result it is from, and of which release and split scheme that
    is. Rows of different ones stand side by side and cannot be compared.

    Example:

        routeyard leaderboard results/* --metric 'audc[usd]' --out board.csv
    """

    import pyarrow as pa
    from pyarrow import csv

    from flows.cli.results import print_result
    from flows.console import line
    from pipelines.errors import BadInput, did_you_mean
    from pipelines.evaluate.run.predictions import leaderboard
    from pipelines.evaluate.run.written import metrics_table
    from schemas.untrusted_text import spreadsheet

    found, releases = {}, {}
    for path in results:
        file = path / "metrics.parquet" if path.is_dir() else path
        if not file.is_file():
            raise BadInput("there is no metrics.parquet", where=str(path))
        table = metrics_table(file)
        if table is None:
            raise BadInput("this is no metrics table of an evaluation", where=str(file))
        name = file.parent.name if file.parent.name else str(file)
        found[name] = table
        if said := _release(file.parent):
            releases[name] = said
    board = leaderboard(found, releases=releases)
    if len(different := sorted(set(releases.values()))) > 1:
        line("note", f"rows of {' and '.join(different)} cannot be compared with each other")
    shown = ["accuracy", *(metric or [])]
    for name in shown:
        if name not in board.column_names:
            raise BadInput(
                f"no result has the metric {name!r}",
                next_step=did_you_mean(name, board.column_names),
            )
    if out is not None:
        columns = [
            pa.array([spreadsheet(value) for value in column.to_pylist()], column.type)
            for column in board.columns
        ]
        # By place: two names may be written alike.
        header = [spreadsheet(name) for name in board.column_names]
        csv.write_csv(pa.Table.from_arrays(columns, header), out)
    if print_result(board, as_json):
        return
    width = max([7, *map(len, releases.values())])
    names = f"{'result':<24} {'release':<{width}} {'router':<28} "
    print(names + " ".join(f"{name:>18}" for name in shown))
    for row in board.to_pylist():
        values = " ".join(
            f"{'–':>18}" if row[name] is None else f"{row[name]:>18.4f}" for name in shown
        )
        of = row["release"] or "–"
        print(f"{row['result']:<24} {of:<{width}} {row['router']:<28} {values}")


def _release(folder: Path) -> str | None:
    """Release and split scheme of an evaluation; None where it does not say."""
    from pipelines.evaluate.run.written import told

    said = told(folder)
    try:
        return f"{said['release']['name']} {said['release']['version']} ({said['facts']['scheme']})"
    except (KeyError, TypeError):
        return None
