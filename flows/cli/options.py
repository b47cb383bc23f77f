"""Options of several commands that need more than a type; `commands.json` has their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

#: Names the workspace, in place of `--workspace`.
WORKSPACE = "ROUTEYARD_WORKSPACE"
#: Defaults of `Workspace` and `Cache`.
YARD = Path("yard")
CACHE = Path("yard/cache/embeddings")


def sealed_off(out: Path | None) -> Path | None:
    """The path a command may write to: any but one in a release, whose seal it would break.

    Raises:
        BadInput: it is a release, or is in one.
    """
    if out is not None:
        from routeyard.pipelines.release.storage import outside_releases

        outside_releases(out)
    return out


def comma_list(text: str) -> list[str]:
    """The names in a text with commas between."""
    return [word.strip() for word in text.split(",") if word.strip()]


def _workspace(**more: Any) -> Any:
    return typer.Option(
        "--workspace", "-w", envvar=WORKSPACE, show_envvar=True, **more
    )  # fmt: skip


Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]
#: A workspace that is only read, and one that is written to.
Workspace = Annotated[Path, _workspace()]
WrittenWorkspace = Annotated[Path, _workspace(callback=sealed_off)]
OldPlace = Annotated[Path | None, typer.Argument(hidden=True)]
#: A path to write to.
WrittenPath = Annotated[Path, typer.Option(callback=sealed_off)]
OptionalWrittenPath = Annotated[Path | None, typer.Option(callback=sealed_off)]
Jobs = Annotated[int, typer.Option(min=1)]
Shards = Annotated[int, typer.Option(min=1)]
ReaskTruncated = Annotated[int | None, typer.Option(min=1)]
Embed = Annotated[bool, typer.Option("--embed")]
Resamples = Annotated[int, typer.Option(min=100)]
Plan = Annotated[bool, typer.Option("--plan")]
