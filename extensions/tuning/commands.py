"""Extensions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from routeyard.flows.cli.options import Output, Plan, WrittenPath, comma_list


def zoo_tune_command(
    release: Path,
    out: WrittenPath,
    routers: str = "all",
    encoders: str = "minilm",
    rows: str = "all",
    ways: str = "frozen,tuned",
    seeds: str = "42",
    scheme: str | None = None,
    epochs: Annotated[int, typer.Option(min=1)] = 3,
    batch: Annotated[int, typer.Option(min=2)] = 32,
    micro: Annotated[int | None, typer.Option(min=1)] = None,
    rate: float = 5e-5,
    head_first: Annotated[bool, typer.Option("--head-first")] = False,
    patience: Annotated[int, typer.Option(min=1)] = 2,
    tokens: Annotated[int, typer.Option(min=4)] = 128,
    precision: Literal["float32", "bf16"] = "float32",
    checkpointing: Annotated[bool, typer.Option("--checkpointing")] = False,
    save_every: Annotated[int, typer.Option(min=1)] = 100,
    device: str = "cpu",
    threads: Annotated[int, typer.Option(min=1)] = 1,
    plan: Plan = False,
) -> Output:
    """Train routers with their encoder end to end.

    Beside them the same heads on the frozen encoder. A grid of routers × encoders × amounts of data
    × frozen or tuned × seeds. The test split is read once, at the end; validation alone stops a
    training and chooses its checkpoint. A run that was killed continues where it was, to the same
    figures. Every cell leaves a router that `routeyard route` asks, and a table of scores for `zoo
    run --own`; `tuned.parquet` is what the studies `tuning_*` read.

    Examples:

        routeyard zoo tune RELEASE --encoders minilm --out tuned --plan

        routeyard zoo tune RELEASE --encoders mpnet --rows 1000,all --device cuda --out tuned

        routeyard study tuning_ablation RELEASE --also tuned/tuned.parquet --out studies

    Args:
        routers: Of the eight trainable heads, commas between, or `all`.
        encoders: minilm, a name, a folder or a hub id; commas between.
        rows: Numbers of train questions, commas between; `all` for all.
        ways: frozen, tuned or both: frozen,tuned.
        seeds: Seeds, commas between.
        epochs: Most passes over the questions.
        batch: Questions of one step.
        micro: Questions at once; a batch is summed over them.
        rate: Learning rate of the encoder.
        head_first: Start from the head of the frozen encoder.
        patience: Epochs without progress.
        tokens: Tokens read of a question.
        precision: Numbers of the forward pass.
        checkpointing: Keep no activations: less memory, more time.
        save_every: Steps between checkpoints.
        device: cpu, cuda or auto (a GPU where there is one).
        threads: CPU threads; 1 repeats exactly.
    """
    from routeyard.extensions.tuning.encoder import TuningSettings
    from routeyard.extensions.tuning.tune import grid_of, read, tune
    from routeyard.extensions.tuning.tune import plan as plan_of
    from routeyard.flows.evaluation.released import out_folder, read_release
    from routeyard.pipelines.common.machine import device_of

    grid = grid_of(
        routers=None if routers == "all" else comma_list(routers), encoders=comma_list(encoders),
        rows=comma_list(rows), ways=comma_list(ways), seeds=comma_list(seeds),
    )  # fmt: skip
    settings = TuningSettings(
        epochs=epochs, batch=batch, micro=min(micro or batch, batch), encoder_rate=rate,
        head_first=head_first, patience=patience, tokens=tokens, precision=precision,
        checkpointing=checkpointing, save_every=save_every, threads=threads,
        device=device_of() if device == "auto" else device,
    )  # fmt: skip
    core, chosen = read(read_release(release), scheme)
    folder = out_folder(release, out)
    result = plan_of(core, chosen, grid, settings, folder)
    if plan:
        lines = (
            f"{row['cell']:<44} {row['steps']:>8,} steps {row['tokens']:>12,} tokens"
            f"{'  done' if row['done'] else ''}"
            for row in result["cells"]
        )
        return Output(result, lines)
    done = tune(core, chosen, grid, settings, folder)
    return Output(done, (folder / "table.md").read_text(encoding="utf-8"))
