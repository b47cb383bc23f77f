"""Standard output through which strangers' text cannot steer a terminal.

Ids, headers and answers of models are printed by many commands: this is the one
place where signs that a terminal acts on become visible.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, TextIO

from routeyard.schemas.untrusted_text import visible


def coloured(stream: TextIO) -> bool:
    """Whether a stream gets colours: a terminal does, unless `NO_COLOR` is set; with
    `FORCE_COLOR` every stream does."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


class Visible:
    """A text stream in which nothing reaches a terminal but text, lines and tabs."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write the text with `�` for signs that act."""
        self.stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """As `write`, line by line."""
        for one in lines:
            self.write(one)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
