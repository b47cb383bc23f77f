"""`routeyard hidden-states`: what a local model's layers make of each query."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json, sealed_off


def command(
    release: Annotated[Path, typer.Argument(help="Release folder.")],
    model: Annotated[str, typer.Option(help="Folder or hub id of any causal language model.")],
    out: Annotated[
        Path,
        typer.Option(callback=sealed_off, help="Folder for part-*.parquet; a run resumes there."),
    ],
    model_id: Annotated[
        str | None, typer.Option(help="Name in the `model_id` column; the folder's if not given.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Only queries of this split: train, validation or test.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Prompts per forward pass.")] = 8,
    shard_size: Annotated[int, typer.Option(min=1, help="Queries per file.")] = 256,
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16.")] = "float32",
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Cut prompts at so many tokens.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, …; chosen if not given.")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Say what it takes, and stop.")] = False,
    as_json: Json = False,
) -> None:
    """Write the mean-pooled hidden state of every layer for each query.

        routeyard hidden-states yard/releases/demo/1.0.0 --model models/small --out states

    Parameters, memory and time are said before weights are loaded; --plan stops there.

    Stop it at any moment: finished files are kept and the same command goes on. Read the
    result with `SELECT * FROM 'states/part-*.parquet'`; layer 0 is the embedding layer.
    """
    from dataclasses import asdict

    import pyarrow.compute as pc

    from flows import console
    from flows.cli.results import print_result
    from flows.evaluation.local_models import say
    from pipelines.errors import BadInput
    from pipelines.release import open_release
    from pipelines.signals.hidden_states import write_hidden_states
    from pipelines.signals.local_model import fingerprint, load

    with open_release(release) as opened:
        queries = opened.arrow("queries")
        splits = opened.arrow("splits") if split else None
    if splits is not None:
        wanted = splits.filter(pc.equal(splits["split"], split)).column("query_id")
        queries = queries.filter(pc.is_in(queries["query_id"], value_set=wanted.combine_chunks()))
    if not queries.num_rows:
        raise BadInput(
            f"the release has no queries of split {split!r}" if split else "no queries",
            where=str(release),
            next_step="use train, validation or test",
        )
    found = say(
        model, queries.column("prompt").to_pylist(), dtype=dtype, device=device,
        max_length=max_length, at_once=batch_size,
    )  # fmt: skip
    if plan:
        print_result(found, as_json)
        return
    with console.counter("hidden states", "shards") as count:
        written = write_hidden_states(
            queries,
            load(model, device=device, dtype=dtype, max_length=max_length),
            out,
            identity={"model": fingerprint(model), "dtype": dtype},
            model_id=model_id,
            shard_size=shard_size,
            batch_size=batch_size,
            on_shard=count,
        )
    cut = f"{written.truncated:,} prompts were longer than the model and were cut"
    print_result(
        {"queries": queries.num_rows, "path": out, **asdict(written)},
        as_json,
        f"{queries.num_rows:,} queries × {written.layers + 1} layers of width {written.width} "
        f"→ {out} ({written.written} files written, {written.reused} were there)",
        *([cut] if written.truncated else []),
    )
