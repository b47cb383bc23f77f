"""Why pairs have no label, and what was never looked for: losses in words, with counts.

A figure such as "3,723 pairs without a label" names no cause. Each pair without a label has
exactly one of those below; what a person can mend comes with an example.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from routeyard.datacards.markdown import texts
from routeyard.datacards.sql import sql_of
from routeyard.schemas.stored import StoredTable, register

_SQL = sql_of("losses")
_NEEDED = ("queries", "models", "labels", "responses", "verdicts")
_NOT_RECORDED = "no recorded answer"
_NEXT: dict[str, str] = texts("losses.yaml")


def causes(tables: Mapping[str, pa.Table | StoredTable]) -> list[dict[str, Any]]:
    """Why pairs of a question and a real model have no label, the most frequent cause first.

    Args:
        tables: queries, models, labels, responses and verdicts in contract form. Without
            one of them nothing is known, and the list is empty.

    Returns:
        cause, scorer, questions, models, pairs, example, query_id and next of each.
    """
    if any(name not in tables for name in _NEEDED):
        return []
    import duckdb

    numbered = "outcomes" in tables
    sql = _SQL["causes"].format(short=_SQL["short_by_number" if numbered else "short"])
    with duckdb.connect(config={"threads": 1, "memory_limit": "2GB"}) as connection:
        for name in (*_NEEDED, *(["outcomes"] if numbered else [])):
            register(connection, name, tables[name])
        found: list[dict[str, Any]] = connection.sql(sql).to_arrow_table().to_pylist()
        recorded = _recorded(connection, tables["responses"])
    for row in found:
        if recorded and row["cause"] == "no response":
            row["cause"] = _NOT_RECORDED
        row["example"] = " ".join(row["example"].split())[:160]
        row["next"] = _NEXT[row["cause"]]
    return found


def _recorded(connection: Any, responses: pa.Table | StoredTable) -> bool:
    """Whether no response was ever requested: they were recorded elsewhere."""
    if not responses.num_rows or "request_hash" not in responses.column_names:
        return False
    sql = "SELECT count(request_hash) = 0 FROM responses SEMI JOIN real USING (model_id)"
    connection.execute("CREATE TEMP VIEW real AS SELECT model_id FROM models WHERE kind = 'real'")
    row = connection.execute(sql).fetchone()
    return bool(row[0])


def sentence(row: Mapping[str, Any]) -> str:
    """One cause in words."""
    by = f" of {row['scorer']!r}" if row["cause"] == "scorer error" else ""
    for_ = f" (scorer {row['scorer']!r})" if row["scorer"] and not by else ""
    example = f": {row['example']}" if row["example"] else ""
    return (
        f"{row['pairs']:,} pairs without a label: {row['cause']}{by}{for_}, "
        f"{row['questions']:,} questions x {row['models']:,} models, "
        f"e.g. {row['query_id']}{example}"
    )
