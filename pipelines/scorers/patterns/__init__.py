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

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def table(name: str) -> Any:
    """Content of the file `NAME.yaml`."""
    text = Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.load(text, Loader=_LOADER)  # noqa: S506  (a safe one)


def patterns(name: str, **words: str) -> dict[str, re.Pattern[str]]:
    """Name → compiled expression, of every entry in the file `NAME.yaml`.

    Args:
        words: What stands for `<name>` in an expression.
    """
    made = {}
    for key, pieces in table(name).items():
        expression = joined(pieces)
        for word, stands_for in words.items():
            expression = expression.replace(f"<{word}>", f"(?:{stands_for})")
        made[key] = re.compile(expression)
    return made


def rewrites(name: str) -> list[tuple[re.Pattern[str], str]]:
    """(expression, replacement) of every row in the file `NAME.yaml`, in their order."""
    return [(re.compile(pattern), replacement) for pattern, replacement in table(name)]


def joined(pieces: str | list[Any]) -> str:
    """One expression of its pieces, which may be lists of pieces themselves."""
    return pieces if isinstance(pieces, str) else "".join(map(joined, pieces))
