"""Sets of records inside JSON documents: lists of objects, maps of them, and ids per outcome.

Nothing here knows a benchmark. A list of objects is a set; so is an object whose values are
alike, with its keys as a column; the values around a set are true of each of its records.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from routeyard.pipelines.ingest.results.columns import MAX_COLUMNS
from routeyard.pipelines.ingest.results.id_lists import id_lists, outcomes
from routeyard.pipelines.ingest.results.json_tables import (
    columns_of_lists,
    named_values,
    of_objects,
    plain_map,
    plain_maps,
    table_rows,
)

#: Trail of a document that is one record.
DOCUMENT = ("(document)",)
#: Levels of nesting that are looked into, and levels that become columns.
_DEEPEST, _COLUMN_DEPTH = 12, 5
#: A text that an object or a list becomes is at most so long.
_LONGEST = 1 << 20


@dataclass(slots=True)
class RecordSet:
    """Records of one kind in one document.

    Attributes:
        trail: Keys that lead to it, `*` for those of a map: sets of one kind share it.
        records: Column → value; nested keys are joined by dots, keys of maps are `(key 0)`, …
        at: Where a person finds each record.
        around: Column → value around the set.
    """

    trail: tuple[str, ...]
    records: list[dict[str, Any]]
    at: list[str]
    around: dict[str, Any] = field(default_factory=dict)


def record_sets(value: Any) -> Iterator[RecordSet]:
    """All sets of records in a JSON value, and the value itself as a set of one."""
    yield from _inside(value, (), {}, "", 0)
    if isinstance(value, dict):
        yield RecordSet(DOCUMENT, [flat(value)], [""])


def _inside(
    value: Any, trail: tuple[str, ...], around: Mapping[str, Any], at: str, keys: int
) -> Iterator[RecordSet]:
    if len(trail) > _DEEPEST:
        return
    if isinstance(value, list):
        rows = [one for one in value if isinstance(one, dict)]
        if named_values(value):
            return
        if rows and 2 * len(rows) > len(value):
            places = [f"{at}[{n}]" for n, one in enumerate(value) if isinstance(one, dict)]
            yield RecordSet(trail, [flat(one) for one in rows], places, dict(around))
            yield from _within(rows, trail, around, places, keys)
    elif isinstance(value, dict):
        yield from _of_object(value, trail, around, at, keys)


def _of_object(
    value: dict[str, Any], trail: tuple[str, ...], around: Mapping[str, Any], at: str, keys: int
) -> Iterator[RecordSet]:
    if rows := table_rows(value):
        places = [f"{at}[{n}]" for n in range(len(rows))]
        yield RecordSet(trail, [flat(row) for row in rows], places, dict(around))
        return
    if lists := id_lists(value):
        rows = outcomes(value, lists, around)
        places = [f"{at}.{row['listed_in']}" for row in rows]
        yield RecordSet((*trail, "(lists of ids)"), rows, places, {**around, **_scalars(value)})
    elif "[]" not in trail and (rows := columns_of_lists(value)):
        places = [f"{at}[{n}]" for n in range(len(rows))]
        yield RecordSet((*trail, "(lists)"), rows, places, {**around, **_scalars(value)})
        return
    for told in (_map_of_objects, _map_of_lists):
        found = told(value, trail, around, at, keys)
        if found is not None:
            yield from found
            return
    if pairs := plain_maps(value):
        records = [{f"(key {keys})": a, f"(key {keys + 1})": b, "value": v} for a, b, v in pairs]
        places = [f"{at}.{a}.{b}" for a, b, _ in pairs]
        yield RecordSet((*trail, "* = values"), records, places, dict(around))
        return
    if trail and (column := plain_map(value)) is not None:
        records = [{f"(key {keys})": k, trail[-1]: column[k]} for k in value]
        places = [f"{at}.{key}" for key in value]
        yield RecordSet((*trail, "* = value"), records, places, dict(around))
    known = {**around, **_scalars(value)}
    for key, part in value.items():
        if isinstance(part, dict | list):
            yield from _inside(part, (*trail, key), known, f"{at}.{key}", keys)


def _map_of_objects(
    value: dict[str, Any], trail: tuple[str, ...], around: Mapping[str, Any], at: str, keys: int
) -> Iterator[RecordSet] | None:
    """Sets of a map from names to objects: id → record, model → question → record; else None."""
    if not of_objects(value):
        return None
    of_one = alike(list(value.values()))
    if not of_one and not all(map(_maps_records, value.values())):
        return None

    def found() -> Iterator[RecordSet]:
        if of_one:
            places = [f"{at}.{key}" for key in value]
            records = [{f"(key {keys})": key, **flat(part)} for key, part in value.items()]
            yield RecordSet((*trail, "*"), records, places, dict(around))
        for key, part in value.items():
            known = {**around, f"(key {keys})": key}
            yield from _of_object(part, (*trail, "*"), known, f"{at}.{key}", keys + 1)

    return found()


def _map_of_lists(
    value: dict[str, Any], trail: tuple[str, ...], around: Mapping[str, Any], at: str, keys: int
) -> Iterator[RecordSet] | None:
    """The set of a map from an id to its attempts; None for any other value."""
    if len(value) < 2 or not all(_records(one) for one in value.values()):
        return None
    pairs = [(key, n, one) for key, part in value.items() for n, one in enumerate(part)]
    if not alike([one for _, _, one in pairs]):
        return None
    records = [{f"(key {keys})": key, "sample": n, **flat(one)} for key, n, one in pairs]
    places = [f"{at}.{key}[{n}]" for key, n, _ in pairs]
    return iter([RecordSet((*trail, "* = list"), records, places, dict(around))])


def _within(
    rows: Sequence[dict[str, Any]], trail: tuple[str, ...], around: Mapping[str, Any],
    places: Sequence[str], keys: int,
) -> Iterator[RecordSet]:  # fmt: skip
    """Sets inside the records of a list: a list of runs, each with its questions."""
    for row, place in zip(rows, places, strict=True):
        known: dict[str, Any] | None = None
        for key, part in row.items():
            if isinstance(part, dict | list) and len(part) >= 2:
                known = {**around, **_scalars(row)} if known is None else known
                yield from _inside(part, (*trail, "[]", key), known, f"{place}.{key}", keys)


def alike(parts: Sequence[Mapping[str, Any]]) -> bool:
    """Whether objects have most of their keys in common, as the records of a table have."""
    looked = parts[:: max(1, len(parts) // 50)]
    common = set(looked[0])
    every = set(looked[0])
    for one in looked[1:]:
        common &= set(one)
        every |= set(one)
    return bool(common) and (2 * len(common) >= len(every) or len(common) >= 3)


def _maps_records(part: Mapping[str, Any]) -> bool:
    return of_objects(part) and alike(list(part.values()))


def _records(part: Any) -> bool:
    """Whether a value is a list of objects, and of nothing else."""
    return isinstance(part, list) and bool(part) and all(isinstance(one, dict) for one in part)


def _scalars(value: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values beside a set, also one or two levels down."""
    found: dict[str, Any] = {}
    for key, one in value.items():
        if isinstance(one, dict) and len(one) <= 50:
            for inner, deep in one.items():
                if isinstance(deep, dict) and len(deep) <= 50:
                    inside = {k: v for k, v in deep.items() if _plain(v)}
                    found |= {f"{key}.{inner}.{k}": v for k, v in inside.items()}
                elif _plain(deep):
                    found[f"{key}.{inner}"] = deep
        elif _plain(one):
            found[key] = one
        elif isinstance(one, list) and len(one) == 1 and isinstance(one[0], str):
            found[key] = one[0]
    return found


def _plain(value: Any) -> bool:
    return isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= 300)


def kinds_of(rows: Sequence[dict[str, Any]]) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    """Kind → (number, row): lines of one file that are records of several kinds.

    A line that shares no key with most others is a header; events say in `type` what they are, and
    those of one type have keys that no other has.
    """
    forms: Counter[tuple[str, ...]] = Counter(tuple(row) for row in rows)
    usual = max(forms.items(), key=lambda one: (one[1], one[0]), default=((), 0))[0]
    most: set[str] = set(usual)
    kinds: dict[str, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    for n, row in enumerate(rows):
        kinds["" if most & row.keys() else "(header)"].append((n, row))
    events = kinds[""]
    types = {row.get("type") for _, row in events}
    if not (2 <= len(types) <= 20 and all(isinstance(one, str) for one in types)):
        return dict(kinds)
    parts: dict[str, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    for n, row in events:
        parts[row["type"]].append((n, row))
    keys = {kind: set().union(*(row for _, row in own)) for kind, own in parts.items()}
    for kind, own in keys.items():
        if not own - set().union(*(keys[other] for other in keys if other != kind)):
            return dict(kinds)
    return {**parts, **{kind: own for kind, own in kinds.items() if kind}}


def flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record with nested keys joined by dots; lists as texts, those of one plain value as it."""
    found: dict[str, Any] = {}
    _flatten(record, "", found, 0)
    return found


def _flatten(value: Mapping[str, Any], before: str, found: dict[str, Any], depth: int) -> None:
    for key, one in value.items():
        name = f"{before}{key}"
        if len(found) >= MAX_COLUMNS:
            return
        single = isinstance(one, list) and len(one) == 1 and "[0]" not in before
        if single and isinstance(one[0], dict) and not named_values(one):
            name, one = (name, turns) if (turns := _turns(one)) else (f"{name}[0]", one[0])
        if isinstance(one, dict) and depth < _COLUMN_DEPTH and one:
            _flatten(one, f"{name}.", found, depth + 1)
        elif isinstance(one, list) and (named := named_values(one)):
            found |= {f"{name}.{key}": value for key, value in named.items()}
        elif isinstance(one, list) and (turns := _turns(one)):
            found |= {f"{name}.{role}": text for role, text in turns.items()}
        elif isinstance(one, list | dict):
            found[name] = _unlisted(one)
        else:
            found[name] = one


def _turns(value: list[Any]) -> dict[str, str]:
    """The first text of the user and the last of the assistant, of a conversation."""
    if not value or not all(isinstance(one, dict) and "role" in one for one in value):
        return {}
    said = [(str(one["role"]), one.get("content")) for one in value]
    users = [text for role, text in said if role in ("user", "human") and isinstance(text, str)]
    answers = [text for role, text in said if role in ("assistant", "ai", "agent", "model")
               and isinstance(text, str)]  # fmt: skip
    return {**({"user": users[0]} if users else {}),
            **({"assistant": answers[-1]} if answers else {})}  # fmt: skip


def _unlisted(value: Any) -> Any:
    """A list of one plain value (or of one such list) as the value; else its JSON, cut."""
    inner = value
    while isinstance(inner, list) and len(inner) == 1:
        inner = inner[0]
    if not isinstance(inner, list | dict):
        return inner
    if not inner:
        return None
    return json.dumps(value, ensure_ascii=False, default=str)[:_LONGEST]
