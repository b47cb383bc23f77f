"""`routeyard hidden-states`: what a local model's layers make of each query."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import Plan, WrittenPath
from routeyard.flows.cli.results import Output


def command(
    release: Path,
    model: Annotated[str, typer.Option()],
    out: WrittenPath,
    model_id: str | None = None,
    split: str | None = None,
    batch_size: Annotated[int, typer.Option(min=1)] = 8,
    shard_size: Annotated[int, typer.Option(min=1)] = 256,
    dtype: str = "float32",
    max_length: Annotated[int | None, typer.Option(min=1)] = None,
    device: str | None = None,
    plan: Plan = False,
) -> Output:
    """Write the mean-pooled hidden state of every layer for each query.

        routeyard hidden-states yard/releases/demo/1.0.0 --model models/small --out states

    Parameters, memory and time are printed before weights are loaded; --plan stops there.

    Stop it at any moment: finished files are kept and the same command goes on. Read the
    result with `SELECT * FROM 'states/part-*.parquet'`; layer 0 is the embedding layer.

    Args:
        model: Folder or hub id of any causal language model.
        out: Folder for part-*.parquet; a stopped run continues there.
        model_id: Name in the `model_id` column; default: the folder's.
        batch_size: Prompts per forward pass.
        shard_size: Queries per file.
        dtype: float32, bfloat16 or float16.
        max_length: Cut prompts at so many tokens.
    """
    from routeyard.flows.console import counter
    from routeyard.flows.evaluation.local_models import report_size
    from routeyard.pipelines.release.reader import open_release
    from routeyard.pipelines.release.selected import queries_of
    from routeyard.pipelines.signals.hidden_states import write_hidden_states
    from routeyard.pipelines.signals.local_model import fingerprint, load

    with open_release(release) as opened:
        queries = queries_of(opened, split)
    found = report_size(
        model, queries.column("prompt").to_pylist(), dtype=dtype, device=device,
        max_length=max_length, at_once=batch_size,
    )  # fmt: skip
    if plan:
        return Output(found)
    with counter("hidden states", "shards") as count:
        done = write_hidden_states(
            queries,
            load(model, device=device, dtype=dtype, max_length=max_length),
            out,
            identity={"model": fingerprint(model), "dtype": dtype},
            model_id=model_id,
            shard_size=shard_size,
            batch_size=batch_size,
            on_shard=count,
        )
    lines = [
        f"{queries.num_rows:,} queries × {done.layers + 1} layers of width {done.width} "
        f"→ {out} ({done.written} files written, {done.reused} were there)"
    ]
    if done.form == "plain":
        lines.append("the model has no chat form: prompts were read as they are")
    else:
        lines.append("prompts were read in the model's chat form, as it is served")
    if done.truncated:
        lines.append(f"{done.truncated:,} prompts were longer than the model and were cut")
    return Output({"queries": queries.num_rows, "path": out, **asdict(done)}, lines)
