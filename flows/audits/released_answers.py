"""A release's tables as a recording, which the audit takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.schemas import SPLITS

#: Rows are answers where texts and costs are known, else pairs.
_SQL = Path(__file__).with_name("released_answers.sql")


def recording_of(tables: Mapping[str, pa.Table]) -> pa.Table:
    """One row per answer of a release, with its label, its question and its split.

    Args:
        tables: `queries` and `labels`; `responses`, `splits`, `steps` where there are any.
    """
    import duckdb

    from routeyard.schemas.release import RECORDING, recording

    query, answers = _SQL.read_text(encoding="utf-8").split(";")[:2]
    with duckdb.connect(config={"threads": 2}) as connection:
        connection.register("queries", tables["queries"])
        connection.register("labels", tables["labels"])
        connection.register("splits", _of_one_scheme(tables.get("splits")))
        if "responses" in tables:
            connection.register("responses", tables["responses"])
            connection.register("relays", _relays(tables.get("steps")))
            query = answers
        found = connection.sql(query).to_arrow_table()
    given = [name for name in RECORDING.names if name in found.column_names]
    return recording({name: found.column(name) for name in given})


def _relays(steps: pa.Table | None) -> pa.Table:
    """Arms whose steps another model than themselves was asked for."""
    if steps is None:
        return pa.table({"model_id": pa.array([], pa.string())})
    others = pc.not_equal(steps.column("model_id"), steps.column("acted_by"))
    return steps.filter(others).select(["model_id"])


def _of_one_scheme(splits: pa.Table | None) -> pa.Table:
    """The rows of `dense`, else of the first scheme in order."""
    if splits is None or not splits.num_rows:
        return SPLITS.from_rows([])
    names = sorted(splits.column("scheme").unique().to_pylist())
    chosen = "dense" if "dense" in names else names[0]
    return splits.filter(pc.equal(splits.column("scheme"), chosen))


def free_arms(models: pa.Table) -> list[str]:
    """Arms whose price is stated as 0."""
    return [
        row["model_id"]
        for row in models.select(["model_id", "price_in", "price_out"]).to_pylist()
        if row["price_in"] == 0 and row["price_out"] == 0
    ]
