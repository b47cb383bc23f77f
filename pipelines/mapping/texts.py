"""What a mapping gives has to be a text; and the mapping to write where it gives something else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from routeyard.pipelines.errors import BadInput, SourceError
from routeyard.pipelines.mapping.expressions import whole

#: The next step where bytes are no UTF-8: what is, is read as text.
BYTES = "store the column as text: its bytes are no UTF-8"
#: Keys under which objects keep the text of an option, answer or message, the most telling first.
_TEXT_KEYS = ("text", "value", "content", "answer", "option", "label", "name")
_PLAIN = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
#: Names that mean something else within an expression.
_WORDS = frozenset(
    ["and", "else", "false", "False", "if", "in", "is", "none", "None", "not", "or", "true", "True"]
)
#: Lists and objects within each other that an expression leads through.
_DEEPEST = 6


def text_of(
    value: Any,
    mapped: str,
    field: str,
    place: str,
    *,
    within: str = "fields.",
    error: type[BadInput] = SourceError,
) -> str:
    """The text of what a mapping gave; null is empty, a number is written out.

    A list or an object is no text: its Python would be asked, or read as an answer.

    Args:
        mapped: The mapping, and `field`, its key: for the error.
        place: File and row.
        within: Where in the recipe the key is.
        error: Raised where it is no text.
    """
    if value is None:
        return ""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value)  # of marked-up text, too, the plain one
    read = expression(mapped)
    kind, written = "a list", f"{read}{_inner(value)}"
    if isinstance(value, Mapping):
        kind = f"an object (with {keys(value)})" if value else "an empty object"
    elif isinstance(value, bytes):
        kind = "bytes"
    elif not list(value):
        kind, written = "an empty list", f"({read} or [''])[-1]"
    step = f'write {field}: "{{{{ {written} }}}}", or another expression that gives a text'
    step = BYTES if kind == "bytes" else step
    says = f"{within}{field} gives {kind} where a text is needed"
    raise error(says, where=place, next_step=step)


def expression(mapped: str | Sequence[str]) -> str:
    """What a mapping reads, to be written inside another expression.

    A name with dots is read as keys within keys.
    """
    if not isinstance(mapped, str):
        return f"[{', '.join(map(expression, mapped))}]"
    if (inside := whole(mapped)) is not None:
        return inside if _plain(inside) else f"({inside})"
    if "{%" in mapped:
        return "…"  # statements have no place in an expression
    if "{{" not in mapped:
        return mapped if _plain(mapped) else f"_row[{mapped!r}]"
    parts = re.split(r"\{\{(.*?)\}\}", mapped, flags=re.S)
    written = [repr(part) if at % 2 == 0 else f"({part.strip()})" for at, part in enumerate(parts)]
    return f"({' ~ '.join(part for part in written if part != repr(''))})"


def text_key(found: Mapping[Any, Any]) -> str:
    """The key that most likely holds the text: by its name, else the longest text."""
    for key in _TEXT_KEYS:
        if key in found:
            return key
    return str(max(found, key=lambda key: len(str(found[key])), default="text"))


def keys(found: Mapping[Any, Any]) -> str:
    """The first keys, quoted."""
    shown = ", ".join(repr(key) for key in list(found)[:5])
    return f"{shown}, …" if len(found) > 5 else shown


def _plain(name: str) -> bool:
    return bool(_PLAIN.fullmatch(name)) and name.partition(".")[0] not in _WORDS


def _inner(value: Any, depth: int = 0) -> str:
    """The way from a value to a text within it: the last entry of a list, the key of a text."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable) or depth >= _DEEPEST:
        return ""
    if isinstance(value, Mapping):
        key = text_key(value)
        return f"[{key!r}]{_inner(value.get(key), depth + 1)}"
    items = list(value)
    return f"[-1]{_inner(items[-1], depth + 1)}" if items else "[0]"
