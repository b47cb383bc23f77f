"""`$NAME` in a recipe's paths and addresses: read from the environment, in one way, never shown.

What a variable expands to may be a secret; errors name the variable and the text
as the recipe has it.
"""

from __future__ import annotations

import os
import re

_NAME = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def names(text: str) -> list[str]:
    """Variables that the text refers to, in order."""
    return [braced or plain for braced, plain in _NAME.findall(text)]


def missing(text: str) -> str | None:
    """The first variable of the text that is not set, or null."""
    return next((name for name in names(text) if name not in os.environ), None)


def expanded(text: str) -> str:
    """The text with its variables filled in; one that is not set stays as it is."""
    return _NAME.sub(lambda found: os.environ.get(found[1] or found[2], found[0]), text)
