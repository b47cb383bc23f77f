"""`routeyard preferences import`: published preference data as a `preferences` table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import sealed_off
from routeyard.flows.cli.results import Output


def command(
    source: Path,
    out: Annotated[Path, typer.Argument(callback=sealed_off)],
) -> Output:
    """Read arena-style preference records, check them and write a `preferences` table.

        routeyard preferences import train.csv preferences.parquet

    Expected columns: id, model_a, model_b, prompt, response_a, response_b, winner_model_a,
    winner_model_b, winner_tie. A record that breaks the form is named and nothing is written.

    Args:
        source: File: .csv, .jsonl or .parquet, plain or .gz.
        out: Parquet file to write.
    """
    from routeyard.flows.workspace.stage_folders import write_table
    from routeyard.pipelines.curate.preference.io import import_preferences
    from routeyard.pipelines.errors import SourceError

    if not source.is_file():
        raise SourceError(f"there is no file {source}", next_step="correct the path")
    pairs = import_preferences(source)
    write_table(pairs, out)
    return Output({"pairs": pairs.num_rows, "path": out}, f"{pairs.num_rows:,} pairs → {out}")
