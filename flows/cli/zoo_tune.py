"""`routeyard zoo tune`: routers whose encoder is trained end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json, Out, Scheme


def command(
    release: Annotated[Path, typer.Argument(help="A release directory.")],
    out: Out,
    routers: Annotated[
        str, typer.Option(help="Of the eight trainable heads, commas between, or `all`.")
    ] = "all",
    encoders: Annotated[
        str, typer.Option(help="minilm, a name, a folder or a hub id; commas between.")
    ] = "minilm",
    rows: Annotated[
        str, typer.Option(help="Numbers of train questions, commas between; `all` for all.")
    ] = "all",
    ways: Annotated[str, typer.Option(help="frozen, tuned or both: frozen,tuned.")] = (
        "frozen,tuned"
    ),
    seeds: Annotated[str, typer.Option(help="Seeds, commas between.")] = "42",
    scheme: Scheme = None,
    epochs: Annotated[int, typer.Option(min=1, help="Most passes over the questions.")] = 3,
    batch: Annotated[int, typer.Option(min=2, help="Questions of one step.")] = 32,
    micro: Annotated[
        int | None, typer.Option(min=1, help="Questions at once; a batch is summed over them.")
    ] = None,
    rate: Annotated[float, typer.Option(help="Learning rate of the encoder.")] = 5e-5,
    head_first: Annotated[
        bool, typer.Option("--head-first", help="Start from the head of the frozen encoder.")
    ] = False,
    patience: Annotated[int, typer.Option(min=1, help="Epochs without progress.")] = 2,
    tokens: Annotated[int, typer.Option(min=4, help="Tokens read of a question.")] = 128,
    precision: Annotated[str, typer.Option(help="float32 or bf16.")] = "float32",
    checkpointing: Annotated[
        bool, typer.Option("--checkpointing", help="Keep no activations: less memory, more time.")
    ] = False,
    save_every: Annotated[int, typer.Option(min=1, help="Steps between checkpoints.")] = 100,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    threads: Annotated[int, typer.Option(min=1, help="CPU threads; 1 repeats exactly.")] = 1,
    plan: Annotated[bool, typer.Option("--plan", help="Say what it takes, and stop.")] = False,
    as_json: Json = False,
) -> None:
    """Train routers with their encoder end to end, and the same heads on the frozen encoder.

    A grid of routers × encoders × amounts of data × frozen or tuned × seeds. The test split is
    read once, at the end; validation alone stops a training and chooses its checkpoint. A run that
    was killed goes on where it was, to the same figures. Every cell leaves a router that
    `routeyard route` asks, and a table of scores for `zoo run --own`; `tuned.parquet` is
    what the studies `tuning_*` read.

    Examples:

        routeyard zoo tune RELEASE --encoders minilm --out tuned --plan

        routeyard zoo tune RELEASE --encoders mpnet --rows 1000,all --device cuda --out tuned

        routeyard study tuning_ablation RELEASE --also tuned/tuned.parquet --out studies
    """
    from flows.cli.results import print_result
    from flows.console import hours
    from flows.evaluation import released
    from flows.evaluation import tune as do
    from pipelines.errors import BadInput
    from pipelines.tuning.heads import HEADS, head_of
    from pipelines.tuning.settings import TuningSettings

    names = list(HEADS) if routers == "all" else _words(routers)
    for name in names:
        head_of(name, 0)
    wanted = _words(ways)
    if not wanted or set(wanted) - {"frozen", "tuned"}:
        raise BadInput(f"--ways {ways!r} is neither frozen nor tuned")
    if precision not in ("float32", "bf16"):
        raise BadInput(f"there is no precision {precision!r}", next_step="float32 or bf16")
    try:
        amounts = tuple(0 if word == "all" else int(word) for word in _words(rows))
        drawn = tuple(int(word) for word in _words(seeds))
    except ValueError as error:
        raise BadInput(f"--rows and --seeds are numbers: {error}") from error
    grid = do.Grid(tuple(names), tuple(_words(encoders)), amounts, tuple(wanted), drawn)
    if not (grid.routers and grid.encoders and grid.amounts and grid.seeds):
        raise BadInput("the grid is empty", next_step="name routers, encoders, rows and seeds")
    if min(amounts) < 0:
        raise BadInput("a number of train questions is negative", next_step="--rows all")
    settings = TuningSettings(
        epochs=epochs, batch=batch, micro=min(micro or batch, batch), encoder_rate=rate,
        head_first=head_first, patience=patience, tokens=tokens, precision=precision,  # type: ignore[arg-type]
        checkpointing=checkpointing, save_every=save_every, device=device, threads=threads,
    )  # fmt: skip
    core, chosen = do.read(released.read_release(release), scheme)
    folder = released.out_folder(release, out)
    found = do.plan(core, chosen, grid, settings, folder)
    do.say(found)
    if plan:
        lines = [
            f"{row['cell']:<44} {row['steps']:>8,} steps {row['tokens']:>12,} tokens "
            f"{hours(row['seconds']):>14}{'  done' if row['done'] else ''}"
            for row in found["cells"]
        ]
        print_result(found, as_json, *lines)
        return
    done = do.tune(core, chosen, grid, settings, folder)
    print_result(done, as_json, (folder / "table.md").read_text(encoding="utf-8"))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
