"""What an exporter is given and what it gives back."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.staging import place, staging
from routeyard.pipelines.release.reader import OpenRelease
from routeyard.pipelines.release.sql import sql_of
from routeyard.schemas.text import guarded

_SQL = sql_of("pairs")
#: Option that every exporter gets: the absolute path that the bundle will have.
TARGET = "(target)"


@dataclass(frozen=True, slots=True)
class Exported:
    """Files written (relative), rows in them, and what the layout cannot hold."""

    files: tuple[str, ...]
    rows: int
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Exporter:
    """One layout. `write(release, folder, options)` fills an empty folder.

    `options` also holds `TARGET`, the path that the folder will have.
    """

    name: str
    title: str
    options: tuple[str, ...]
    write: Callable[[OpenRelease, Path, Mapping[str, str]], Exported]


def export(
    exporter: Exporter, release: OpenRelease, target: Path, options: Mapping[str, str]
) -> Exported:
    """Write a bundle to `target`, whole or not at all.

    Raises:
        BadInput: `target` exists, or an option is not one of the layout's.
    """
    there = BadInput(f"{target} exists already", where=str(target), next_step="name a new folder")
    if target.exists():
        raise there
    for name in options:
        if name not in exporter.options:
            raise BadInput(
                f"the layout {exporter.name} has no option {name!r}",
                next_step="options: " + (", ".join(exporter.options) or "none"),
            )
    with staging(target) as folder:
        done = exporter.write(release, folder, {**options, TARGET: str(target.absolute())})
        try:
            place(folder, target)
        except FileExistsError:  # another export made it while this one wrote
            raise there from None
    return done


def pairs(release: OpenRelease) -> list[dict[str, Any]]:
    """Every labelled pair of the release; pairs without a label are left out, never wrong."""
    sql = _SQL["pairs"]
    if "responses" not in release.tables:
        sql = sql.replace("LEFT JOIN responses r", f"LEFT JOIN {_SQL['no_responses']} r")
    rows: list[dict[str, Any]] = release.sql(sql, timeout_s=3600).to_pylist()
    return rows


def numbers(release: OpenRelease, table: str, column: str) -> dict[str, int]:
    """Position of each id in a table of the release."""
    return {one: i for i, one in enumerate(release.arrow(table).column(column).to_pylist())}


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A CSV file with the line ends that the layouts' own files have.

    A text that a spreadsheet would run as a formula has an apostrophe before it.
    """
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(map(guarded, header))
        writer.writerows(map(guarded, row) for row in rows)


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """One JSON object a line."""
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
