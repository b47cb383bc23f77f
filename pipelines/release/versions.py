"""Semantic versions of a benchmark: which exist, which is next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from routeyard.schemas.manifest import TableEntry

Version = tuple[int, int, int]


def parse(text: str) -> Version | None:
    """`1.2.3` as numbers; None for anything else."""
    parts = text.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    return (int(parts[0]), int(parts[1]), int(parts[2]))


def existing(folder: Path) -> list[Version]:
    """Versions under `releases/<name>/`, oldest first."""
    if not folder.is_dir():
        return []
    found = (parse(path.name) for path in folder.iterdir() if path.is_dir())
    return sorted(version for version in found if version is not None)


def next_version(
    version: str,
    before: Mapping[str, TableEntry],
    after: Mapping[str, TableEntry],
    taken: Iterable[Version],
) -> str:
    """The version to set: major when queries differ, minor when other tables do, else patch.

    A router trained on one major version answers the same questions in all of
    its minor ones.
    """
    major, minor, patch = parse(version) or (0, 0, 0)
    changed = {
        name
        for name in {*before, *after}
        if name not in before or name not in after or before[name].content != after[name].content
    }
    used = set(taken)
    if "queries" in changed:
        step = (major + 1, 0, 0)
    elif changed:
        step = (major, minor + 1, 0)
    else:
        step = (major, minor, patch + 1)
    while step in used:
        step = (step[0], step[1], step[2] + 1)
    return ".".join(map(str, step))
