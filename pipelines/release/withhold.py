"""Sources whose licence forbids passing their text on: ids and labels stay, the text goes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from schemas import CONTRACTS

WITHHELD = "[text withheld: the licence of the source forbids redistribution]"

#: What is replaced in rows that belong to such a source. Answers and judges' reasons quote the
#: question, so they go too; tokens, costs, scores and ids stay.
_REPLACED: Mapping[str, Mapping[str, Any]] = {
    "queries": {
        "question": WITHHELD,
        "prompt": WITHHELD,
        "choices": [],
        "references": [],
        "metadata": json.dumps({}),
    },
    "responses": {"text": WITHHELD, "logprobs": None, "graded_against": None},
    "verdicts": {
        "extracted": None,
        "reason": WITHHELD,
        "span_start": None,
        "span_end": None,
    },
    "preferences": {"prompt": WITHHELD, "response_a": WITHHELD, "response_b": WITHHELD},
}


def withhold(
    tables: Mapping[str, pa.Table], sources: Iterable[Mapping[str, Any]]
) -> dict[str, pa.Table]:
    """Tables without the text of sources that say `redistribute_text: false`."""
    closed = [s["source"] for s in sources if s.get("redistribute_text") is False]
    out = dict(tables)
    if not closed:
        return out
    queries = tables["queries"]
    hidden = pc.is_in(queries.column("source"), value_set=pa.array(closed, pa.string()))
    ids = queries.filter(hidden).column("query_id").combine_chunks()
    for name, replaced in _REPLACED.items():
        if name in tables:
            out[name] = _replace(CONTRACTS[name].schema, tables[name], ids, replaced)
    return out


def _replace(
    schema: pa.Schema, table: pa.Table, ids: pa.Array, replaced: Mapping[str, Any]
) -> pa.Table:
    rows = pc.is_in(table.column("query_id"), value_set=ids)
    for column, value in replaced.items():
        field = schema.field(column)
        fill = pa.scalar(value, type=field.type)
        old = table.column(column)
        if pa.types.is_list(field.type):
            # if_else has no kernel for lists of text in every case: build them from Python.
            kept = [
                value if hide else item
                for item, hide in zip(old.to_pylist(), rows.to_pylist(), strict=True)
            ]
            new = pa.chunked_array([pa.array(kept, type=field.type)])
        else:
            keep_null = pc.is_null(old)
            new = pc.if_else(pc.and_(rows, pc.invert(keep_null)), fill, old)
        table = table.set_column(table.schema.get_field_index(column), field, new)
    return table
