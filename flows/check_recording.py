"""Faults of one recording, all at once: its files, its columns, its models."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from routeyard.flows.recipe_faults import Finding, finding
from routeyard.pipelines.collect.recorded_file import not_in_the_pool
from routeyard.pipelines.collect.recorded_row import NEEDED
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.io import files, named_files
from routeyard.pipelines.mapping.expressions import Field
from routeyard.pipelines.mapping.fields import NoColumn, compile_field
from routeyard.schemas.recipe import Recorded


def recording_faults(
    entry: Recorded, pool: Collection[str] | None, base: Path
) -> Iterator[Finding]:
    """Faults that need no question to be seen, with keys within the entry; none hides another.

    Args:
        pool: Names of the pool's models; None where they are not known.
        base: Folder that the recipe's paths start from.
    """
    try:
        paths = named_files.expand(entry.path, base=base, where="collect.recorded")
    except BadInput as error:
        yield finding(("path",), error)
        return
    readers: dict[str, Field] = {}
    for name, text in entry.fields.model_dump(exclude_none=True).items():
        try:
            readers[name] = compile_field(text, where=f"{paths[0].name}, fields.{name}")
        except BadInput as error:
            yield finding(("fields", name), error)
    unread: dict[str, BadInput | None] = dict.fromkeys(readers)
    models: dict[str, None] = {}
    try:
        for row in chain.from_iterable(files.rows(path, entry.format) for path in paths):
            _try(row, readers, unread)
            if "model" in readers and "model" not in unread:
                models[_model(row, readers["model"])] = None
    except BadInput as error:
        yield finding(("path",), error, where=True)
    for name, fault in unread.items():
        if fault is not None:
            yield finding(("fields", name), fault, where=True)
    unknown = [name for name in models if name and name not in (pool or ())]
    if unknown and pool is not None and entry.other_models == "error":
        yield finding((), not_in_the_pool(unknown, pool, entry, where=entry.path), where=True)


def _try(row: Any, readers: dict[str, Field], unread: dict[str, BadInput | None]) -> None:
    """Read the keys that no row had so far; a needed key is missing from the first row on."""
    for name in list(unread):
        if unread[name] is not None and name in NEEDED:
            continue
        try:
            readers[name](row)
            del unread[name]
        except NoColumn as error:
            unread[name] = unread[name] or error
        except BadInput:
            del unread[name]  # reported by the import, with the row


def _model(row: Any, read: Field) -> str:
    try:
        return str(read(row) or "")
    except BadInput:
        return ""
