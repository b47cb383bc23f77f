"""Regular expressions and word tables that answers are read with: a YAML file for each module.

A module's code names a pattern (`_RE["mention"]`), its file holds it, with a comment that
shows what it is for. A list is one expression, written in pieces; `&name` marks a piece
that `*name` repeats.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]")
_GROUP = re.compile(r"\([^()]*\)")
_REPEATED = re.compile(r".(?:[?*+]|\{[^}]*\})|[.^$]")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def table(name: str) -> Any:
    """Content of the file `NAME.yaml`."""
    text = Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.load(text, Loader=_LOADER)  # noqa: S506  (a safe one)


class Patterns(dict[str, re.Pattern[str]]):
    """Name → expression, compiled when it is first asked for.

    Attributes:
        pieces: Name → the expression in pieces, as its file has it.
        words: The words that replace `<name>` in an expression.
    """

    def __init__(self, pieces: dict[str, str | list[Any]], words: dict[str, str]) -> None:
        super().__init__()
        self.pieces, self.words = pieces, words
        self.hints: dict[str, tuple[str, ...]] = {}

    def search(self, name: str, text: str, start: int, end: int) -> re.Match[str] | None:
        """The first match in `text[start:end]`, which is not searched without a hint of one."""
        known = self.hints.get(name)
        if known is None:
            known = self.hints[name] = hints(self[name].pattern)
        hinted = any(map(text[start:end].lower().__contains__, known))
        return self[name].search(text, start, end) if hinted else None

    def __missing__(self, name: str) -> re.Pattern[str]:
        expression = joined(self.pieces[name])
        for word, stands_for in self.words.items():
            expression = expression.replace(f"<{word}>", f"(?:{stands_for})")
        made = self[name] = re.compile(expression)
        return made


def hints(expression: str) -> tuple[str, ...]:
    """Texts in lower case of which each match holds one: the empty one, where none is known."""
    text = _CLASS.sub("\0", expression)
    while "(" in text and text != (text := _GROUP.sub("\0", text)):
        pass
    kept = _REPEATED.sub("\0", text).lower()
    return tuple(max(part.split("\0"), key=len) for part in kept.split("|"))


def patterns(name: str, **words: str) -> Patterns:
    """The expressions in the file `NAME.yaml`."""
    return Patterns(table(name), words)


def rewrites(name: str) -> list[tuple[re.Pattern[str], str]]:
    """(expression, replacement) of every row in the file `NAME.yaml`, in their order."""
    return [(re.compile(pattern), replacement) for pattern, replacement in table(name)]


def joined(pieces: str | list[Any]) -> str:
    """One expression of its pieces, which may be lists of pieces themselves."""
    return pieces if isinstance(pieces, str) else "".join(map(joined, pieces))
