"""What a row lists: its options, whose places are letters, and its references, as texts.

A letter counts places, so an option is never left out from before another one: a null, NaN or
empty text there is an error. At the end they are padding, as tables with a column for each
option have it, and left out. What is no text (an object, a list) is an error too: taken as it
is, its keys or its Python would be asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.mapping.expressions import letter
from routeyard.pipelines.mapping.texts import BYTES, expression, keys, text_key


def options(value: Any, mapped: str | Sequence[str], place: str) -> list[str]:
    """The options of a row, each at the place its letter counts; those at the end that are
    empty are left out.

    Args:
        value: What the mapping gave.
        mapped: The mapping, for the error's next step.
        place: File, row and id, for errors.

    Raises:
        SourceError: an option before others is empty, or one is no text.
    """
    found = [
        "" if _nothing(item) else str(item) for item in _items(value, mapped, "choices", place)
    ]
    while found and not found[-1].strip():
        found.pop()
    hole = next((at for at, text in enumerate(found) if not text.strip()), None)
    if hole is not None:
        listed = expression(mapped)
        raise SourceError(
            f"option {letter(hole) if hole < 26 else hole + 1} of {len(found)} has no text, and "
            "the letters of the others count it",
            where=place,
            next_step="complete the row, or leave it out with 'exclude'; to show such options as "
            f"empty write choices: \"{{{{ {listed} | map('default', '(empty)', true) | list }}}}\""
            ", and where the letters count only those with a text, "
            f"\"{{{{ {listed} | reject('in', [none, '']) | list }}}}\"",
        )
    return found


def references(value: Any, mapped: str | Sequence[str], place: str) -> list[str]:
    """The references of a row; null ones are left out: an answer may meet any of them.

    Raises:
        SourceError: one is no text.
    """
    items = _items(value, mapped, "references", place)
    return [str(item) for item in items if not _nothing(item)]


def _items(value: Any, mapped: str | Sequence[str], field: str, place: str) -> list[Any]:
    """The entries of a list, each a text, number or nothing; one value is a list of one."""
    if _nothing(value):
        return []
    if isinstance(value, Mapping):
        inside = expression(mapped)
        whole = field == "choices"
        taken = f"{inside}.values() | list" if whole else f"{inside}[{text_key(value)!r}]"
        raise SourceError(
            f"fields.{field} gives an object (with {keys(value)}) where texts are needed",
            where=place,
            next_step=f'write {field}: "{{{{ {taken} }}}}"',
        )
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        value = [value]
    items = list(value)
    for at, item in enumerate(items):
        if isinstance(item, Iterable) and not isinstance(item, str):
            _refuse_entry(item, items, at, mapped, field, place)
    return items


def _refuse_entry(
    item: Any, items: Sequence[Any], at: int, mapped: str | Sequence[str], field: str, place: str
) -> NoReturn:
    kind, taken, through = "a list", "[-1]", "map('last')"
    if isinstance(item, Mapping):
        kind, taken = f"an object (with {keys(item)})", f"[{text_key(item)!r}]"
        through = f"map(attribute={text_key(item)!r})"
    if isinstance(mapped, str):
        written = f'"{{{{ {expression(mapped)} | {through} | list }}}}"'
    else:
        # Each entry of a list of mappings gives one text.
        written = f'["{{{{ {expression(mapped[at])}{taken} }}}}", …]'
    step = f"write {field}: {written}, or another expression that gives texts"
    if isinstance(item, bytes):
        kind, step = "bytes", BYTES
    raise SourceError(
        f"entry {at + 1} of the {len(items)} that fields.{field} gives is {kind}, no text",
        where=place,
        next_step=step,
    )


def _nothing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
