"""What is wrong with one recording by itself: its files, its columns, its models; all at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from pipelines.collect.recorded_file import not_in_the_pool
from pipelines.collect.recorded_row import NEEDED
from pipelines.errors import BadInput
from pipelines.io import files, named_files
from pipelines.mapping.expressions import Field
from pipelines.mapping.fields import NoColumn, compile_field
from schemas.recipe import Recorded

#: Keys within the entry, what is wrong, and the next step.
Fault = tuple[tuple[str, ...], str, str]


def alone_faults(entry: Recorded, pool: Collection[str] | None, base: Path) -> Iterator[Fault]:
    """Faults that need no question to be seen; none of them hides another.

    Args:
        pool: Names of the pool's models; None where they are not known.
        base: Folder that the recipe's paths start from.
    """
    try:
        paths = named_files.expand(entry.path, base=base, where="collect.recorded")
    except BadInput as error:
        yield ("path",), error.what, error.next_step or ""
        return
    readers: dict[str, Field] = {}
    for name, text in entry.fields.model_dump(exclude_none=True).items():
        try:
            readers[name] = compile_field(text, where=f"{paths[0].name}, fields.{name}")
        except BadInput as error:
            yield ("fields", name), error.what, error.next_step or ""
    unread: dict[str, BadInput | None] = dict.fromkeys(readers)
    models: dict[str, None] = {}
    try:
        for path in paths:
            for row in files.rows(path, entry.format):
                _try(row, readers, unread)
                if "model" in readers and "model" not in unread:
                    models[_model(row, readers["model"])] = None
    except BadInput as error:
        yield ("path",), f"{error.what} ({error.where})", error.next_step or ""
    for name, fault in unread.items():
        if fault is not None:
            yield ("fields", name), f"{fault.what} ({fault.where})", fault.next_step or ""
    strangers = [name for name in models if name and name not in (pool or ())]
    if strangers and pool is not None and entry.other_models == "error":
        said = not_in_the_pool(strangers, pool, entry, where=entry.path)
        yield (), f"{said.what} ({said.where})", said.next_step or ""


def _try(row: Any, readers: dict[str, Field], unread: dict[str, BadInput | None]) -> None:
    """Read what no row could be read by so far; a needed key stands in the first row."""
    for name in list(unread):
        if unread[name] is not None and name in NEEDED:
            continue
        try:
            readers[name](row)
            del unread[name]
        except NoColumn as error:
            unread[name] = unread[name] or error
        except BadInput:
            del unread[name]  # said by the import, with the row


def _model(row: Any, read: Field) -> str:
    try:
        return str(read(row) or "")
    except BadInput:
        return ""
