"""Shards: what a browser reads back, and answers cut around what was read."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from datacards.site.shards import pieces


def unpacked(path: Path) -> Any:
    found = re.fullmatch(r'routeyard\("\w+",\d+,"([A-Za-z0-9+/=]*)"\);\n', path.read_text("ascii"))
    assert found, "a shard is one call with base64 and nothing else"
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


@pytest.mark.parametrize(
    ("text", "span", "longest", "expected"),
    [
        (None, (0, 1), 10, {"text": None}),
        ("so: 42.", (4, 6), 10, {"text": ["so: ", "42", "."]}),
        ("so: 42.", None, 10, {"text": ["so: 42."]}),
        # An emoji is one character here and two in a browser: pieces need no offsets.
        ("🎉🎉 42", (3, 5), 10, {"text": ["🎉🎉 ", "42", ""]}),
        # Offsets that do not fit the text mark nothing.
        ("short", (4, 90), 10, {"text": ["short"]}),
        # Without a span the end is kept, where an answer commits itself.
        ("a" * 20 + "END", None, 10, {"text": ["a" * 7 + "END"], "cut": [13, 0]}),
        ("a" * 9 + "X" + "b" * 90, (9, 10), 10, {"text": ["aaaaaaa", "X", "bb"], "cut": [2, 88]}),
    ],
)
def test_pieces(text: str | None, span: Any, longest: int, expected: dict[str, Any]) -> None:
    assert pieces(text, span, longest) == expected
