"""What `routeyard init` looks at: a file, a folder of files of one kind, or a hub dataset."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pipelines.errors import BadInput, SourceError

#: Rows that the guess looks at.
LOOKED_AT = 200
_ENDINGS = ("parquet", "jsonl", "ndjson", "json", "csv", "tsv")


class Told(dict[str, Any]):
    """A row that knows its file."""

    def __init__(self, row: Mapping[str, Any], file: str):
        super().__init__(row)
        self.file = file


def look(
    origin: str, recipe: Path, config: str | None, split: str | None
) -> tuple[dict[str, Any], list[dict[str, Any]], list[str]]:
    """The source as a recipe names it, its first rows, and files beside it that are not read.

    Raises:
        SourceError: there is no file, folder or dataset of questions.
    """
    from pipelines.io import files

    path = Path(origin).expanduser()
    if path.is_dir():
        found = {e: sorted(path.glob(f"**/*.{e}")) for e in _ENDINGS}
        kinds = {ending: paths for ending, paths in found.items() if paths}
        if not kinds:
            raise SourceError(
                "the folder holds no file of questions",
                where=str(path),
                next_step="files that are read: " + ", ".join(f"*.{e}" for e in _ENDINGS),
            )
        ending = max(kinds, key=lambda e: sum(p.stat().st_size for p in kinds[e]))
        unread = sorted(p for e, paths in kinds.items() if e != ending for p in paths)
        said = [f"{_names(unread)} (only *.{ending} files are read)"] if unread else []
        if len(kinds[ending]) == 1:
            source, rows, _ = look(str(kinds[ending][0]), recipe, config, split)
            return source, rows, said
        deep = any(p.parent != path for p in kinds[ending])
        place = path / ("**" if deep else "") / f"*.{ending}"
        each = max(1, LOOKED_AT // len(kinds[ending]))
        rows = [Told(r, p.name) for p in kinds[ending] for r in islice(files.rows(p), each)]
        return {"name": _name(path.name), "path": relative(place, recipe)}, rows, said
    if path.is_file():
        rows = list(islice(files.rows(path), LOOKED_AT))
        if not rows:
            raise SourceError("the file holds no row", where=str(path))
        return {"name": _name(path.name.split(".")[0]), "path": relative(path, recipe)}, rows, []
    if re.fullmatch(r"[\w.-]+/[\w.-]+", origin) and path.suffix[1:] not in _ENDINGS:
        source, rows = _look_at_hub(origin, config, split)
        return source, rows, []
    raise SourceError(
        f"there is no file or folder {origin}",
        where=str(path.absolute()),
        next_step="name a file, a folder, or a hub dataset as owner/name",
    )


def _look_at_hub(
    hub_id: str, config: str | None, split: str | None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    from pipelines.ingest import hub

    where = f"source {hub_id!r}"
    commit = hub.resolve(hub_id, None, where=where)
    taken = split or "test"
    rows = hub.rows(
        hub_id, config=config, split=taken, revision=commit, streaming=True, where=where
    )
    source = {"name": _name(hub_id.rpartition("/")[2]), "kind": "hub", "hub_id": hub_id}
    source |= {"split": taken, "revision": commit, **({"config": config} if config else {})}
    return source, list(islice(rows, LOOKED_AT))


def relative(path: Path, recipe: Path) -> str:
    """The path as seen from the recipe's folder; `$` would be read as a variable."""
    return os.path.relpath(path.absolute(), recipe.absolute().parent)


def _name(text: str) -> str:
    return re.sub(r"[^\w.-]+", "_", text).strip("_") or "questions"


def one_kind(rows: Sequence[Mapping[str, Any]], question: Any, origin: str) -> None:
    """Stop where rows of two kinds lie together, such as questions and answers to them.

    Args:
        question: The mapping of the question, as guessed; None where none was found: then rows
            that name a model tell answers from questions, and without them the recipe says
            itself what it lacks.

    Raises:
        BadInput: says how many rows are of another kind than the first, and their columns.
    """
    if question is None and not any(_names_a_model(row) for row in rows):
        return
    if question is not None and ("{{" in str(question) or all(question in row for row in rows)):
        return
    other = [row for row in rows if _unlike(row, rows[0])]
    if not other:
        return
    at = getattr(other[0], "file", None) or f"row {rows.index(other[0]) + 1}"
    raise BadInput(
        f"rows of different kinds: the first has {', '.join(map(str, rows[0]))}; "
        f"{len(other):,} of {len(rows):,} looked at, {at} first, have "
        f"{', '.join(map(str, other[0]))}",
        where=origin,
        next_step="name the file of the questions alone; recorded answers are a file of their "
        "own, under collect.recorded",
    )


def _names_a_model(row: Mapping[str, Any]) -> bool:
    return any(str(name).lower().startswith(("model", "llm")) for name in row)


def _unlike(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Fewer than half of the columns of both are common."""
    return 2 * len(row.keys() & other.keys()) < len(row.keys() | other.keys())


def _names(paths: Sequence[Path]) -> str:
    more = len(paths) - 3
    return ", ".join(p.name for p in paths[:3]) + (f" and {more} more" if more > 0 else "")
