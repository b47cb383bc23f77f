"""Regular expressions and word tables that answers are read with: a YAML file for each module.

A module's code names a pattern (`_RE["mention"]`), its file holds it, with a comment that
shows what it is for. A list is one expression, written in pieces; `&name` marks a piece
that `*name` repeats.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from routeyard.schemas.text import own_table

_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]")
_GROUP = re.compile(r"\([^()]*\)")
_REPEATED = re.compile(r".(?:[?*+]|\{[^}]*\})|[.^$]")
#: "<not>", which the words of a list replace; no group's name.
_KEY = re.compile(r"(?<!\?P)<([a-z_|]+)>")


def table(name: str) -> Any:
    """Content of the file `NAME.yaml`."""
    return own_table(Path(__file__).with_name(f"{name}.yaml"))


class Patterns(dict[str, re.Pattern[str]]):
    """Name → expression, compiled when it is first asked for.

    Attributes:
        pieces: Name → the expression in pieces, as its file has it.
        words: `<name>` in an expression → what replaces it.
        hints: Name → texts in lower case of which each match holds one.
    """

    def __init__(
        self, pieces: dict[str, str | list[Any]], words: Callable[[str], str] | None = None
    ) -> None:
        super().__init__()
        self.pieces, self.words = pieces, words
        self.hints: dict[str, tuple[str, ...]] = {}
        self._known: dict[tuple[str, bool], tuple[str, ...]] = {}

    def hinted(self, name: str, text: str) -> bool:
        """Whether a text has a hint of a match."""
        lower = text.lower()
        key = (name, lower.isascii())  # a text in ASCII has hints in ASCII only
        if (known := self._known.get(key)) is None:
            every = self.hints.get(name) or hints(self[name].pattern)
            known = tuple(item for item in dict.fromkeys(every) if item.isascii() or not key[1])
            self._known[key] = known
        return any(map(lower.__contains__, known))

    def search(self, name: str, text: str, start: int, end: int) -> re.Match[str] | None:
        """The first match in `text[start:end]`, which is not searched without a hint of one."""
        hinted = self.hinted(name, text[start:end])
        return self[name].search(text, start, end) if hinted else None

    def __missing__(self, name: str) -> re.Pattern[str]:
        made = self[name] = re.compile(self._filled(joined(self.pieces[name])))
        return made

    def _filled(self, expression: str) -> str:
        words = self.words
        if words is None:
            return expression
        return _KEY.sub(lambda key: f"(?:{self._filled(words(key[1]))})", expression)


def hints(expression: str) -> tuple[str, ...]:
    """Texts in lower case of which each match holds one: the empty one, where none is known."""
    text = _CLASS.sub("\0", expression)
    while "(" in text and text != (text := _GROUP.sub("\0", text)):
        pass
    text = _REPEATED.sub("\0", text).lower()
    return tuple(max(part.split("\0"), key=len) for part in text.split("|"))


def patterns(name: str) -> Patterns:
    """The expressions in the file `NAME.yaml`."""
    return Patterns(table(name))


def rewrites(name: str) -> list[tuple[re.Pattern[str], str]]:
    """(expression, replacement) of every row in the file `NAME.yaml`, in their order."""
    return [(re.compile(pattern), replacement) for pattern, replacement in table(name)]


def joined(pieces: str | list[Any]) -> str:
    """One expression of its pieces, which may be lists of pieces themselves."""
    return pieces if isinstance(pieces, str) else "".join(map(joined, pieces))
