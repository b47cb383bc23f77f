"""Names under which providers serve a model."""

from __future__ import annotations

import re

_DATED = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-\d{4}|-latest)?")


def same_model(asked: str, served: str) -> bool:
    """Whether the served name is the asked one, give or take vendor prefix and date.

    `openai/gpt-4o` is served as `gpt-4o-2024-08-06`; `gpt-4o-mini` is another model.
    """
    a, b = (name.lower().rsplit("/", 1)[-1].split(":", 1)[0] for name in (asked, served))
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    if not longer.startswith(shorter):
        return False
    return _DATED.fullmatch(longer[len(shorter) :]) is not None
