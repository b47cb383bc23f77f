"""`routeyard preferences export`: pairs in the form other routers train on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json, sealed_off


def command(
    release: Annotated[Path, typer.Argument(help="Release folder.")],
    out: Annotated[
        Path, typer.Argument(callback=sealed_off, help="File to write: .csv, .jsonl or .parquet.")
    ],
    basis: Annotated[
        str | None, typer.Option(help="Only pairs decided by this, e.g. semantic_entropy.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Only queries of this split: train, validation or test.")
    ] = None,
    entropies: Annotated[
        bool, typer.Option(help="Also write entropies, δ and what decided each pair.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write preference pairs as id, model_a, model_b, prompt, both responses and the winner.

        routeyard preferences export yard/releases/demo/1.0.0 train.parquet --split train

    Prompt and responses are JSON lists with one text per turn, as in the public arena data.
    """
    import pyarrow.compute as pc

    from flows.cli.results import print_result
    from pipelines.curate.preference.io import export_preferences
    from pipelines.errors import BadInput
    from pipelines.release import open_release

    with open_release(release) as opened:
        if "preferences" not in opened.tables:
            raise BadInput(
                "the release has no preference pairs",
                where=str(release),
                next_step="add the curation rule 'preference' to its recipe and build again",
            )
        pairs = opened.arrow("preferences")
        splits = opened.arrow("splits") if split else None
    if basis is not None:
        pairs = pairs.filter(pc.equal(pairs["basis"], basis))
    if splits is not None:
        wanted = splits.filter(pc.equal(splits["split"], split)).column("query_id")
        pairs = pairs.filter(pc.is_in(pairs["query_id"], value_set=wanted.combine_chunks()))
    export_preferences(pairs, out, entropies=entropies)
    said = {"pairs": pairs.num_rows, "path": out}
    print_result(said, as_json, f"{pairs.num_rows:,} pairs → {out}")
