"""Options that a table stores as objects: where their texts are, and what labels they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from routeyard.pipelines.ingest.guessing.guess import here
from routeyard.pipelines.mapping.texts import text_key

_LISTS = ("text", "texts", "choices")
_LABELS = ("label", "key", "letter", "id", "option", "index")


@dataclass(frozen=True, slots=True)
class StoredOptions:
    """Expressions over a row: its options' texts and their labels (empty without any)."""

    texts: str
    labels: str
    why: str


def is_object(value: Any) -> bool:
    """Whether options are an object, or a list of objects."""
    listed = isinstance(value, list) and bool(value)
    return isinstance(value, dict) or (listed and all(isinstance(one, dict) for one in value))


def stored(column: str, seen: Sequence[Any]) -> StoredOptions | None:
    """How the options of a column are reached; None where its values hold no texts.

    Args:
        seen: The column's values, each an object or a list of objects.
    """
    if all(isinstance(value, dict) for value in seen):
        return _of_objects(column, seen)
    if not all(isinstance(value, list) for value in seen):
        return None
    entries = [entry for value in seen for entry in value]
    shared = [key for key in entries[0] if all(_is_text(one.get(key)) for one in entries)]
    if not shared:
        return None
    text = text_key({key: entries[0][key] for key in shared})
    label = next((key for key in _LABELS if key in shared and key != text), None)
    texts, labels = (
        f"{here(column)} | map(attribute={key!r}) | list" if key else "" for key in (text, label)
    )
    return StoredOptions(texts, labels, f"{column!r}, the {text!r} of each")


def _of_objects(column: str, seen: Sequence[Any]) -> StoredOptions | None:
    """Options as one object: with a list of texts, or with a text per letter."""
    at = here(column)
    inner = next((k for k in _LISTS if all(isinstance(v.get(k), list) for v in seen)), None)
    if inner is not None:
        return StoredOptions(f"{at}.{inner}", f"{at}.label", f"{column!r} holds texts")
    if all(len(v) > 1 and all(map(_is_text, v.values())) for v in seen):
        why = f"{column!r} holds a text per letter"
        return StoredOptions(f"{at}.values() | list", f"{at}.keys() | list", why)
    return None


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)
