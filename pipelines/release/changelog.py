"""The changelog of a benchmark, from the differences between its versions."""

from __future__ import annotations

from pathlib import Path

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.release.diff import Diff, diff_releases
from routeyard.pipelines.release.manifest import read_manifest
from routeyard.pipelines.release.versions import existing
from routeyard.pipelines.release.yank import yanked
from routeyard.schemas.untrusted_text import markdown

_SHOWN = 5


def changelog(benchmark: Path) -> str:
    """Markdown over all versions under `releases/<name>/`, newest first.

    Raises:
        SourceError: there is no version.
    """
    versions = [".".join(map(str, version)) for version in existing(benchmark)]
    if not versions:
        raise SourceError(
            f"{benchmark} holds no version of a benchmark",
            where=str(benchmark),
            next_step="give the folder releases/<name>",
        )
    parts = []
    for number, version in enumerate(versions):
        folder = benchmark / version
        manifest = read_manifest(folder)
        lines = [f"## {version}", ""]
        if note := yanked(folder):
            instead = f" Use {markdown(note.use_instead)}." if note.use_instead else ""
            lines += [f"**Yanked:** {markdown(note.reason)}.{instead}", ""]
        if number == 0:
            rows = {name: entry.rows for name, entry in manifest.tables.items()}
            lines.append(
                f"- First version: {rows['queries']:,} queries, {rows['models']:,} models, "
                f"{rows['labels']:,} labels."
            )
        else:
            lines += described(diff_releases(benchmark / versions[number - 1], folder))
        parts.append("\n".join(lines))
    title = f"# Changelog of {read_manifest(benchmark / versions[-1]).name}"
    return "\n\n".join([title, *reversed(parts)]) + "\n"


def described(diff: Diff) -> list[str]:
    """A difference as lines of a list; what a reader must know comes first."""
    lines = []
    for name, kinds in diff.counts().items():
        counts = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        lines.append(f"- {name.capitalize()}: {counts}{_examples(diff, name)}.")
    return lines or ["- Only texts of the card or the recipe changed."]


def _examples(diff: Diff, name: str) -> str:
    table = diff.tables[name]
    if name == "labels":
        by: dict[str, int] = {}
        for decider in table.column("decided_by_after").to_pylist():
            by[str(decider)] = by.get(str(decider), 0) + 1
        counts = ", ".join(f"{markdown(k)}: {n:,}" for k, n in sorted(by.items()))
        return f" (decided by {counts})"
    if name in ("models", "prices", "ranks", "costs"):
        models = table.column("model_id").to_pylist()
        more = f" and {len(models) - _SHOWN} more" if len(models) > _SHOWN else ""
        return f" ({', '.join(markdown(str(m)) for m in models[:_SHOWN])}{more})"
    return ""
