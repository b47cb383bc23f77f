"""`routeyard preferences export`: pairs in the form other routers train on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import sealed_off
from routeyard.flows.cli.results import Output


def command(
    release: Path,
    out: Annotated[Path, typer.Argument(callback=sealed_off)],
    basis: str | None = None,
    split: str | None = None,
    entropies: bool = False,
) -> Output:
    """Write preference pairs as id, model_a, model_b, prompt, both responses and the winner.

        routeyard preferences export yard/releases/demo/1.0.0 train.parquet --split train

    Prompt and responses are JSON lists with one text per turn, as in the public arena data.

    Args:
        out: File to write: .csv, .jsonl or .parquet.
        basis: Only pairs decided by this, e.g. semantic_entropy.
        entropies: Also write entropies, δ and what decided each pair.
    """
    from routeyard.pipelines.curate.preference.io import export_preferences
    from routeyard.pipelines.release.reader import open_release
    from routeyard.pipelines.release.selected import preference_pairs

    with open_release(release) as opened:
        pairs = preference_pairs(opened, basis=basis, split=split)
    export_preferences(pairs, out, entropies=entropies)
    return Output({"pairs": pairs.num_rows, "path": out}, f"{pairs.num_rows:,} pairs → {out}")
