"""Sources whose licence forbids passing their text on: ids and labels stay, the text goes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.schemas import CONTRACTS
from routeyard.schemas.withheld import WITHHELD

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
    "steps": {"said": WITHHELD, "queries": [], "found": [], "error": None},
    "verdicts": {
        "extracted": None,
        "reason": WITHHELD,
        "span_start": None,
        "span_end": None,
    },
    "preferences": {"prompt": WITHHELD, "response_a": WITHHELD, "response_b": WITHHELD},
}


@dataclass(frozen=True)
class Withheld:
    """The queries whose text may not be passed on."""

    ids: pa.Array

    @classmethod
    def of(
        cls, queries: Iterable[pa.Table], sources: Iterable[Mapping[str, Any]]
    ) -> Withheld | None:
        """Those of sources that say `redistribute_text: false`; None when no source does.

        Args:
            queries: the table in parts.
        """
        closed = [s["source"] for s in sources if s.get("redistribute_text") is False]
        if not closed:
            return None
        names = pa.array(closed, pa.string())
        found = [
            part.column("query_id").filter(pc.is_in(part.column("source"), value_set=names))
            for part in queries
        ]
        chunks = [chunk for ids in found for chunk in ids.chunks]
        return cls(pa.concat_arrays([pa.array([], pa.string()), *chunks]))

    def replace(self, name: str, table: pa.Table) -> pa.Table:
        """A table, or a part of one, without their text."""
        if name not in _REPLACED:
            return table
        return _replace(CONTRACTS[name].schema, table, self.ids, _REPLACED[name])


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
