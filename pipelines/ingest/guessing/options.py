"""Options that a table stores as objects: where their texts are, and what labels they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.mapping.texts import text_key

_LISTS = ("text", "texts", "choices")
_LABELS = ("label", "key", "letter", "id", "option", "index")


@dataclass(frozen=True, slots=True)
class Stored:
    """Expressions over a row: its options' texts and their labels (empty where there are none)."""

    texts: str
    labels: str
    why: str


def is_object(value: Any) -> bool:
    """Whether options are an object, or a list of objects."""
    listed = isinstance(value, list) and bool(value)
    return isinstance(value, dict) or (listed and all(isinstance(one, dict) for one in value))


def stored(column: str, seen: Sequence[Any]) -> Stored | None:
    """How the options of a column are reached; None where its values hold no texts.

    Args:
        seen: The column's values, each an object or a list of objects.
    """
    here = f"_row[{column!r}]"
    if all(isinstance(value, dict) for value in seen):
        inner = next((k for k in _LISTS if all(isinstance(v.get(k), list) for v in seen)), None)
        if inner is not None:
            return Stored(f"{here}.{inner}", f"{here}.label", f"{column!r} holds texts")
        if all(len(v) > 1 and all(map(_plain, v.values())) for v in seen):
            why = f"{column!r} holds a text per letter"
            return Stored(f"{here}.values() | list", f"{here}.keys() | list", why)
        return None
    if not all(isinstance(value, list) for value in seen):
        return None
    entries = [entry for value in seen for entry in value]
    shared = [key for key in entries[0] if all(_plain(one.get(key)) for one in entries)]
    if not shared:
        return None
    text = text_key({key: entries[0][key] for key in shared})
    label = next((key for key in _LABELS if key in shared and key != text), None)

    def each(key: str) -> str:
        return f"{here} | map(attribute={key!r}) | list"

    return Stored(each(text), each(label) if label else "", f"{column!r}, the {text!r} of each")


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)
