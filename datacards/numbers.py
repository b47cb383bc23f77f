"""Every number of a card, computed from the tables of the release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from routeyard.datacards.sql import sql_of
from routeyard.schemas.contracts import StoredTable, register
from routeyard.schemas.release import order_undecided, undecided_words

_SQL = sql_of("numbers")
#: Table → names of what is counted of it.
_COUNTED = {
    "labels": ("counts", "oracle", "best_single", "decided"),
    "responses": ("cost", "status", "unpriced"),
    "splits": ("splits",),
    "duplicates": ("duplicates",),
    "removals": ("removals",),
    "verdicts": ("read_as",),
}
_ONE_ROW = {"counts", "oracle", "cost", "best_single"}

#: `decided`: share of a pair's responses that entered its label; the rest is open.
_DECIDED = "score, correct, least(1, coalesce(n_samples, 0) / greatest(n_responses, 1)) AS decided"


def card_numbers(tables: Mapping[str, pa.Table | StoredTable]) -> dict[str, Any]:
    """Counts, accuracies, costs, splits, duplicates and removals of a release.

    A table the release does not hold gives an empty list, or None where one
    row is expected. Sums run in one thread over rows in their released order,
    so the last digit does not depend on the machine.
    """
    import duckdb

    found: dict[str, Any] = dict.fromkeys(_ONE_ROW)
    with duckdb.connect(config={"threads": 1, "memory_limit": "2GB"}) as connection:
        for name, table in tables.items():
            register(connection, name, table)
        _count(connection, tables)
        names = ["models", "tasks", "sources", "prices"]
        for table, of_table in _COUNTED.items():
            if table in tables:
                names += of_table
            else:
                found |= {name: [] for name in of_table if name not in _ONE_ROW}
        for name in names:
            rows = connection.sql(_SQL[name]).to_arrow_table().to_pylist()
            found[name] = next(iter(rows), None) if name in _ONE_ROW else rows
    found["unpriced"] = [row["model_id"] for row in found["unpriced"]]
    found["rows"] = {name: table.num_rows for name, table in tables.items()}
    # Bounds are given only where something is open.
    found["bounds"] = any((one["high"] or 0) - (one["low"] or 0) > 1e-12 for one in found["models"])
    found["order_undecided"] = _undecided(found)
    found["simulated"] = sum(bool(model["simulated"]) for model in found["models"])
    return found


def _undecided(found: Mapping[str, Any]) -> str:
    """Why no model is called best; empty where missing labels do not leave it open."""
    if not (single := found["best_single"]):
        return ""
    counts = {
        one["model_id"]: (
            (pairs := one["labelled"] + one["undecided"]) * (one["low"] or 0),
            pairs * (1 - (one["high"] or 0) + (one["low"] or 0)) if pairs else 0,
            single["judged"],
        )
        for one in found["models"]
    }
    first = single["models"][0]
    others = order_undecided(counts, first)
    return undecided_words(first, others) if others else ""


def _count(connection: Any, tables: Mapping[str, pa.Table | StoredTable]) -> None:
    """`of_question` and `of_model`, over labels under whatever names a question and a model."""
    if "labels" not in tables:
        connection.execute(
            "CREATE TEMP TABLE labels (query_id VARCHAR, model_id VARCHAR, score DOUBLE)"
        )
    # Labels of a question are together in outcomes, under a number: no text is compared.
    if "outcomes" in tables:
        cells = f"SELECT query_no AS question, model_no AS model, {_DECIDED} FROM outcomes"
        question = model = "row_number() OVER () - 1"
    else:
        correct = "correct" if "labels" in tables else "NULL::BOOLEAN AS correct"
        known = f"score, {correct}, (score IS NOT NULL)::DOUBLE AS decided"
        cells = f"SELECT query_id AS question, model_id AS model, {known} FROM labels"
        question, model = "query_id", "model_id"
    connection.execute(f"CREATE TEMP VIEW cells AS {cells}")
    connection.execute(f"CREATE TEMP VIEW asked AS SELECT {question} AS question, * FROM queries")
    connection.execute(f"CREATE TEMP VIEW pool AS SELECT {model} AS model, * FROM models")
    for name in ("of_question", "of_model"):
        connection.execute(_SQL[name])
