"""Tables inside JSON: rows of data frames, columns as lists, maps and lists of named values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from routeyard.pipelines.ingest.results.roles import FAMILY, rank_of
from routeyard.pipelines.ingest.results.values import FIGURE_NAMES, FIGURE_VALUES, plain

#: Fewest rows of columns that are lists.
_ROWS = 10


def table_rows(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of a table as data frames are written; empty for other values.

    Names of columns beside a list of lists, or column → row number → value.
    """
    names = next((value[k] for k in ("columns", "header", "headers") if k in value), ())
    cells = next((value[k] for k in ("data", "rows", "values") if k in value), ())
    listed = isinstance(cells, list) and bool(cells) and _strings(names)
    if listed and all(isinstance(row, list) and len(row) == len(names) for row in cells):
        return [dict(zip(names, row, strict=True)) for row in cells]
    if not of_objects(value):
        return []
    first = next(iter(value.values()))
    if list(first) != [str(n) for n in range(len(first))] or len(first) < 2:
        return []
    if any(part.keys() != first.keys() for part in value.values()):
        return []
    return [{name: part[n] for name, part in value.items()} for n in first]


def _strings(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def columns_of_lists(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of an object whose lists of one length are columns; empty for other objects.

    One of the lists has to be named as scores or answers are, or most of them as models are.
    """
    lists = {k: one for k, one in value.items() if isinstance(one, list) and one}
    rows = {len(one) for one in lists.values()}
    if len(lists) < 2 or len(rows) > 1:
        return []
    if any(isinstance(x, list | dict) for one in lists.values() for x in one[:_ROWS]):
        return []
    of_models = 2 * sum(FAMILY.search(k) is not None for k in lists) >= len(lists)
    if not of_models and min(rows) < _ROWS:
        return []
    if not of_models and all(rank_of(k, r) is None for k in lists for r in ("score", "text")):
        return []
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def of_objects(value: Mapping[str, Any]) -> bool:
    """Whether each of several values is an object that holds something."""
    return len(value) >= 2 and all(isinstance(one, dict) and one for one in value.values())


def plain_map(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """Values of a map from keys to numbers, truths or words, or to lists of one of them."""
    if len(value) < 2:
        return None
    plain = {
        key: one[0] if isinstance(one, list) and len(one) == 1 else one
        for key, one in value.items()
    }
    kinds = {type(one) for one in plain.values()} - {type(None)}
    fits = kinds and (kinds <= {bool} or kinds <= {int, float} or kinds <= {str})
    return plain if fits else None


def plain_maps(value: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """(outer key, inner key, value) of a map of maps of numbers that have other keys each.

    Suite → question → right or wrong; empty for other maps.
    """
    inner = [plain_map(one) if isinstance(one, dict) else None for one in value.values()]
    if len(inner) < 2 or any(one is None or len(one) < _ROWS // 2 for one in inner):
        return []
    kinds = {type(v) for one in inner for v in (one or {}).values()} - {type(None)}
    every = [key for one in inner for key in one or ()]
    if not kinds <= {bool, int, float} or len(set(every)) < 0.5 * len(every):
        return []
    return [(a, b, v) for a, one in zip(value, inner, strict=True) for b, v in (one or {}).items()]


def named_values(value: Sequence[Any]) -> dict[str, Any]:
    """Name → value of a list of objects that name one plain value each; empty for other lists."""
    found: dict[str, Any] = {}
    for one in value if len(value) <= 50 else ():
        keys = {plain(key): key for key in one} if isinstance(one, dict) else {}
        name = next((one[keys[k]] for k in FIGURE_NAMES if k in keys), None)
        key = next((k for k in FIGURE_VALUES if k in keys), "")
        if not isinstance(name, str) or not key or name in found or len(name) > 60:
            return {}
        if (key == "score" and len(value) < 2) or isinstance(one[keys[key]], dict | list):
            return {}
        found[name] = one[keys[key]]
    return found
