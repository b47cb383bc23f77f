"""Some rows of the questions: from all of a file or folder, or the first of a hub dataset."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from routeyard.pipelines.errors import BadInput, SourceError
from routeyard.pipelines.io import files
from routeyard.pipelines.matrix.costs import few

#: Rows that the guess looks at, and rows that they are drawn from.
LOOKED_AT, DRAWN_FROM = 200, 1_000_000
_ENDINGS = ("parquet", "jsonl", "ndjson", "json", "csv", "tsv")


class FileRow(dict[str, Any]):
    """A row that knows its file."""

    def __init__(self, row: Mapping[str, Any], file: str):
        super().__init__(row)
        self.file = file


def first_rows(
    origin: str, recipe: Path, config: str | None, split: str | None
) -> tuple[dict[str, Any], list[dict[str, Any]], list[str]]:
    """The source as a recipe names it, its first rows, and files beside it that are not read.

    Raises:
        SourceError: there is no file, folder or dataset of questions.
    """
    path = Path(origin).expanduser()
    if not path.exists():
        if re.fullmatch(r"[\w.-]+/[\w.-]+", origin) and path.suffix[1:] not in _ENDINGS:
            return *_of_hub(origin, config, split), []
        raise SourceError(
            f"there is no file or folder {origin}",
            where=str(path.absolute()),
            next_step="name a file, a folder, or a hub dataset as owner/name",
        )
    paths, unread = _of_folder(path) if path.is_dir() else ([path], [])
    each = max(1, LOOKED_AT // len(paths))
    rows: list[dict[str, Any]] = [
        FileRow(row, one.name) for one in paths for row in drawn(files.rows(one), each)
    ]
    if not rows:
        raise SourceError(
            "the file has no rows",
            where=str(paths[0]),
            next_step="name a file with a row for each question or answer, below its header",
        )
    if len(paths) == 1:
        name, place = paths[0].name.split(".")[0], paths[0]
        rows = [dict(row) for row in rows]
    else:
        deep = any(one.parent != path for one in paths)
        name, place = path.name, path / ("**" if deep else "") / f"*{paths[0].suffix}"
    return {"name": _name(name), "path": relative(place, recipe)}, rows, unread


def drawn(rows: Iterable[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """At most so many rows from all of a file, in their order; each is as likely as any other.

    What the end of a file holds counts as what its start does (J. Vitter, "Random sampling with a
    reservoir", 1985, algorithm R).
    """
    kept: list[tuple[int, dict[str, Any]]] = []
    draw = random.Random(0)
    for number, row in enumerate(islice(rows, DRAWN_FROM)):
        if number < most:
            kept.append((number, row))
        elif (place := draw.randrange(number + 1)) < most:
            kept[place] = (number, row)
    return [row for _, row in sorted(kept, key=lambda one: one[0])]


def _of_folder(folder: Path) -> tuple[list[Path], list[str]]:
    """The folder's files of the ending that holds most bytes, and a line on the others."""
    found = {ending: sorted(folder.glob(f"**/*.{ending}")) for ending in _ENDINGS}
    if not any(found.values()):
        raise SourceError(
            "the folder holds no file of questions",
            where=str(folder),
            next_step="files that are read: " + ", ".join(f"*.{e}" for e in _ENDINGS),
        )
    found = {ending: paths for ending, paths in found.items() if paths}
    ending = max(found, key=lambda e: sum(path.stat().st_size for path in found[e]))
    others = sorted(path.name for e, paths in found.items() if e != ending for path in paths)
    return found[ending], [f"{few(others)} (only *.{ending} files are read)"] if others else []


def _of_hub(
    hub_id: str, config: str | None, split: str | None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    from routeyard.pipelines.ingest import hub

    where, split = f"source {hub_id!r}", split or "test"
    commit = hub.resolve(hub_id, None, where=where)
    rows = hub.rows(
        hub_id, config=config, split=split, revision=commit, streaming=True, where=where
    )
    source = {"name": _name(hub_id.rpartition("/")[2]), "kind": "hub", "hub_id": hub_id}
    source |= {"split": split, "revision": commit, **({"config": config} if config else {})}
    return source, list(islice(rows, LOOKED_AT))


def relative(path: Path, recipe: Path) -> str:
    """The path as seen from the recipe's folder; `$` would be read as a variable."""
    return os.path.relpath(path.absolute(), recipe.absolute().parent)


def _name(text: str) -> str:
    return re.sub(r"[^\w.-]+", "_", text).strip("_") or "questions"


def one_kind(rows: Sequence[Mapping[str, Any]], question: Any, origin: str) -> None:
    """Refuse a source with rows of two kinds, such as questions and answers to them.

    Args:
        question: The mapping of the question, as guessed; None where none was found: then rows
            that name a model are taken for answers, and without them the recipe states
            what it lacks.

    Raises:
        BadInput: says how many rows are of another kind than the first, and their columns.
    """
    if question is None:
        names = (str(name).lower() for row in rows for name in row)
        alike = not any(name.startswith(("model", "llm")) for name in names)
    else:
        alike = "{{" in str(question) or all(question in row for row in rows)
    # Of another kind: less than half of the columns of both are common.
    first = rows[0].keys()
    other = [row for row in rows if 2 * len(row.keys() & first) < len(row.keys() | first)]
    if alike or not other:
        return
    at = getattr(other[0], "file", None) or f"row {rows.index(other[0]) + 1}"
    raise BadInput(
        f"rows of different kinds: the first has {', '.join(map(str, first))}; "
        f"{len(other):,} of {len(rows):,} looked at, {at} first, have "
        f"{', '.join(map(str, other[0]))}",
        where=origin,
        next_step="name only the file of the questions; recorded answers belong into another "
        "file, under collect.recorded",
    )
