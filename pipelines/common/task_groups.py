"""Groups of tasks: those known by name, and which questions match a list of patterns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from routeyard.pipelines.common.arrays import Bools

_LISTED = yaml.safe_load(Path(__file__).with_name("task_groups.yaml").read_text(encoding="utf-8"))
#: Name → patterns (lower case) of the groups that can be asked for by name.
OOD_GROUPS: dict[str, tuple[str, ...]] = {
    name: (*listed, *(f"mmlu_{task}" for task in listed))
    for name, listed in _LISTED["also_in_mmlu"].items()
} | {name: tuple(listed) for name, listed in _LISTED["as_listed"].items()}


def members(
    patterns: Sequence[str], columns: Iterable[Any], metadata: Sequence[str | None] = ()
) -> Bools:
    """(n,) questions that a pattern holds, in any case.

    Args:
        patterns: names or patterns (`mmlu_*`) of the values in `columns`, or
            `field=pattern` for a field of the metadata (`subject=*physics`).
        columns: task, domain and source of each question, (n,) each.
        metadata: JSON objects of the n questions; none when not known.
    """
    asked = [pattern.lower().partition("=") for pattern in patterns]
    plain = [name for name, equals, _ in asked if not equals]
    fields = [(name.strip(), pattern.strip()) for name, equals, pattern in asked if equals]
    listed = [list(map(str, column)) for column in columns]
    hit = np.zeros(len(listed[0]), dtype=bool)
    for values in listed:
        held = {v for v in set(values) if v and any(fnmatchcase(v.lower(), p) for p in plain)}
        hit |= np.fromiter((value in held for value in values), dtype=bool, count=len(values))
    if not fields:
        return hit
    for row, text in enumerate(metadata):
        found: Any = json.loads(text) if text else {}
        if isinstance(found, dict):
            lowered = {str(key).lower(): str(value).lower() for key, value in found.items()}
            hit[row] |= any(fnmatchcase(lowered.get(name, ""), p) for name, p in fields)
    return hit
