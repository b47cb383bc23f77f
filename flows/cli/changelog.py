"""`routeyard changelog`: all versions of a benchmark and what changed between them."""

from __future__ import annotations

from pathlib import Path

from routeyard.flows.cli.options import OptionalWrittenPath
from routeyard.flows.cli.results import Output


def command(
    benchmark: Path,
    out: OptionalWrittenPath = None,
) -> Output:
    """Print the changelog of a benchmark as Markdown, made from the data of its versions.

    routeyard changelog yard/releases/demo --out CHANGELOG.md

    Args:
        benchmark: Folder releases/<name>.
        out: Write it to this file.
    """
    from routeyard.pipelines.release.changelog import changelog

    text = changelog(benchmark)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    shown = text.rstrip("\n") if out is None else str(out)
    return Output({"benchmark": benchmark, "markdown": text, "path": out}, shown)
