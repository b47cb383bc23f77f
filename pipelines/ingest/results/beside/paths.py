"""Absolute paths in strangers' files: they name people and machines, and travel with a copy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from routeyard.pipelines.ingest.results.values import ReadingNote

#: Bytes of each file, and of all files, that are looked at.
_OF_FILE, _OF_ALL = 4_000_000, 256_000_000
_PATH = re.compile(
    rb"(?:(?<![\w.])/(?:Users|home)/|\b[A-Z]:\\{1,2}Users\\{1,2})([A-Za-z][\w.-]{1,30})[/\\]"
)
#: Accounts of containers and examples.
_NOBODY = frozenset(
    b"user ubuntu root agent runner docker app username name you me test admin sandbox model "
    b"work vscode node public shared default jovyan".split()
)
_TEXT = (".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".yaml", ".yml", ".txt", ".log", ".md")
_SHOWN = 3


def path_notes(paths: Sequence[Path], root: Path) -> list[ReadingNote]:
    """A note of the files with absolute paths of somebody's machine; empty without any."""
    found: Counter[str] = Counter()
    held, left = [], _OF_ALL
    for path in paths:
        if path.suffix.lower() not in _TEXT or left <= 0:
            continue
        with path.open("rb") as stream:
            data = stream.read(min(_OF_FILE, left))
        left -= len(data)
        names = [m for m in _PATH.finditer(data) if m[1].lower() not in _NOBODY]
        if names:
            held.append(path.relative_to(root).as_posix() if path != root else path.name)
            found.update(m[0].decode(errors="replace") for m in names)
    if not held:
        return []
    shown = ", ".join(repr(one) for one, _ in found.most_common(_SHOWN))
    says = (
        f"{len(held):,} files hold absolute paths of somebody's machine ({shown}): they are "
        "published with a copy of the files"
    )
    return [ReadingNote("paths", says, len(held), tuple(held[:_SHOWN]), "the files")]
