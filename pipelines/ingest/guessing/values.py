"""Tests of a column's values; `roles.yaml` names the one that each role demands."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

#: Tests in Python, as code questions have them for references.
CODE = re.compile(r"\bassert\b|\bdef check\(|\bunittest\b")


def present(seen: Sequence[Any]) -> list[Any]:
    """Values that are neither null nor empty."""
    return [
        value
        for value in seen
        if value not in (None, "", []) and not (isinstance(value, str) and value.isspace())
    ]


def mostly_filled(seen: Sequence[Any]) -> bool:
    """Whether at most one row in ten lacks a value."""
    return 10 * (len(seen) - len(present(seen))) <= len(seen)


def mean_length(texts: Sequence[Any]) -> float:
    """Mean length of the values as texts, in characters."""
    return sum(len(str(text)) for text in texts) / max(1, len(texts))


def is_score(value: Any) -> bool:
    """Whether a value is a number in [0, 1], NaN, or true or false, also as text."""
    if isinstance(value, bool) or str(value).strip().lower() in ("true", "false"):
        return True
    try:
        number = float(value)
    except (TypeError, ValueError):
        return False
    return math.isnan(number) or 0 <= number <= 1


def scores(seen: Sequence[Any]) -> bool:
    """Whether a column holds scores, with gaps in at most half of its rows."""
    there = [value for value in seen if value not in (None, "")]
    return bool(there) and 2 * len(there) >= len(seen) and all(map(is_score, there))


def distinct(seen: Sequence[Any]) -> bool:
    """Whether every row has a value, and no two rows the same."""
    return all(value not in (None, "") for value in seen) and len({*map(str, seen)}) == len(seen)


def consecutive(seen: Sequence[Any]) -> bool:
    """Whether values only number the rows."""
    try:
        numbers = [int(str(value)) for value in seen]
    except ValueError:
        return False
    return all(b - a == 1 for a, b in pairwise(numbers))


def is_json_list(value: Any) -> bool:
    """Whether a value is a text that holds a JSON list."""
    try:
        return isinstance(value, str) and isinstance(json.loads(value), list)
    except ValueError:
        return False


def _long_text(there: Sequence[Any]) -> bool:
    if all(isinstance(value, dict) for value in there):
        there = [value.get("text") for value in there]
    return all(isinstance(value, str) for value in there) and mean_length(there) >= 8


def _repeated_text(there: Sequence[Any]) -> bool:
    texts = all(isinstance(value, str) for value in there)
    return texts and len(set(there)) <= max(1, len(there) // 2)


#: Name in `roles.yaml` → test of the values that are present; there is at least one.
TESTS: dict[str, Callable[[Sequence[Any]], bool]] = {
    "anything": lambda there: True,
    "code": lambda there: sum(bool(CODE.search(str(v))) for v in there) > len(there) / 2,
    "few_words": lambda there: all(len(str(v).split()) <= 3 for v in there),
    "fractions": lambda there: all(map(is_score, there)),
    "long_text": _long_text,
    "no_numbers": lambda there: not any(isinstance(v, int | float) for v in there),
    "repeated_text": _repeated_text,
}
