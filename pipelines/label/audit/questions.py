"""Questions that the audit asks of verdicts and labels, by name; `questions.sql` holds them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_PARTS = re.split(r"^-- name: (\w+)\n", Path(__file__).with_suffix(".sql").read_text(), flags=re.M)
_SQL = dict(zip(_PARTS[1::2], _PARTS[2::2], strict=True))


def question(name: str) -> str:
    """The SQL of that name; `{rules}` and `{same}` in it are filled with those parts."""
    parts: dict[str, Any] = {part: _SQL[part].strip() for part in ("rules", "same")}
    return _SQL[name].format(**parts)
