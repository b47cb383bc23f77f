"""Records and tables of a stranger as Arrow columns of plain types."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.ingest.results.values import plain

#: Columns of one table.
MAX_COLUMNS = 20_000


def table_of(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Records as a table; a column of several kinds holds texts."""
    names = list(dict.fromkeys(name for row in rows for name in row))[:MAX_COLUMNS]
    return pa.table({name: column_of([row.get(name) for row in rows]) for name in names})


def plainly_named(table: pa.Table) -> pa.Table:
    """The table without names in brackets, which are ours: `('m', 'score')` becomes `m.score`."""
    names: list[str] = []
    for name in table.column_names:
        parts = re.findall(r"'([^']*)'|\"([^\"]*)\"", name) if name.startswith("('") else []
        short = ".".join(a or b for a, b in parts if a or b) or name
        short = short.removeprefix("(").removesuffix(")") if short.startswith("(") else short
        names.append(short if short not in names and short else f"{short}_{len(names)}")
    return table if names == table.column_names else table.rename_columns(names)


def column_of(values: list[Any]) -> pa.Array:
    """Values as a column, as texts where they are of several kinds."""
    kinds = {type(one) for one in values} - {type(None)}
    if kinds <= {bool} or kinds <= {int, float} or kinds <= {str}:
        try:
            return pa.array(values)
        except (pa.ArrowInvalid, OverflowError, pa.ArrowTypeError):
            pass
    return pa.array([_text(one) for one in values], pa.string())


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def same_types(parts: list[pa.Table]) -> list[pa.Table]:
    """The tables with columns of one type each: text where the types do not agree."""
    kinds: dict[str, set[pa.DataType]] = {}
    for part in parts:
        for one in part.schema:
            if not pa.types.is_null(one.type):
                kinds.setdefault(one.name, set()).add(one.type)
    numeric = (pa.types.is_integer, pa.types.is_floating)
    mixed = {
        name
        for name, types in kinds.items()
        if len(types) > 1 and not all(any(test(t) for test in numeric) for t in types)
    }
    found = []
    for part in parts:
        for name in mixed & set(part.column_names):
            at = part.column_names.index(name)
            values = part.column(name)
            if not pa.types.is_string(values.type):
                texts = pa.array([_text(v) for v in values.to_pylist()], pa.string())
                part = part.set_column(at, name, texts)
        found.append(part)
    return found


def one_spelling(table: pa.Table) -> pa.Table:
    """The table with columns that are spelled alike but for case and signs as one column.

    Only where no row has a value in two of them: `pass@1` of some files, `Pass@1` of others.
    """
    spelled: dict[str, list[str]] = {}
    for name in table.column_names:
        if not name.startswith("("):
            spelled.setdefault(plain(name), []).append(name)
    for names in spelled.values():
        columns = [table.column(name) for name in names]
        there = sum(len(one) - one.null_count for one in columns)
        if len(names) < 2 or len({one.type for one in columns}) > 1:
            continue
        merged = pc.coalesce(*columns)
        if len(merged) - merged.null_count == there:
            at = table.column_names.index(names[0])
            table = table.set_column(at, names[0], merged).drop_columns(names[1:])
    return table


#: Numbers with a comma before their decimals, or with commas for thousands.
_COMMA, _THOUSANDS = r"^ *[-−+]?\d+(,\d+)? *%?$", r"^ *[-−+]?[1-9]\d{0,2}(,\d{3})+ *%?$"


def point_for_comma(column: pa.Array) -> pa.Array:
    """Texts with a decimal comma as texts with a point, where all are such numbers.

    `1,250` alone is a thousand; beside `0,5`, or `1,25`, the comma precedes decimals.
    """
    there = pc.utf8_trim_whitespace(column.drop_null())
    there = there.filter(pc.not_equal(there, ""))
    comma = there.filter(pc.match_substring(there, ","))
    if not len(comma) or not pc.all(pc.match_substring_regex(there, _COMMA)).as_py():
        return column
    if pc.all(pc.match_substring_regex(comma, _THOUSANDS)).as_py():
        return column
    return pc.replace_substring(column, ",", ".")


def plain_columns(table: pa.Table) -> pa.Table:
    """A table without structs, dictionaries and lists: nested names are joined by dots."""
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    for at, one in enumerate(table.schema):
        if pa.types.is_dictionary(one.type):
            values = table.column(at).cast(one.type.value_type)
            if not pa.types.is_integer(values.type) and not pa.types.is_floating(values.type):
                values = values.cast(pa.string())
        elif pa.types.is_nested(one.type) or pa.types.is_binary(one.type):
            found = table.column(at).to_pylist()
            if not _are_numbers(found):
                found = [_single(value) for value in found]
            values = pa.chunked_array([column_of(found)])
        elif pa.types.is_temporal(one.type) or pa.types.is_large_string(one.type):
            values = table.column(at).cast(pa.string())
        else:
            continue
        table = table.set_column(at, one.name, values)
    return table


def _are_numbers(values: list[Any]) -> bool:
    """Whether values are lists of numbers, some of them of several: ids of tokens, not a number."""
    lists = [one for one in values if isinstance(one, list)]
    return any(len(one) > 1 and not isinstance(one[0], str | dict | list) for one in lists)


def _single(value: Any) -> Any:
    """A list of one plain value as that value."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value
