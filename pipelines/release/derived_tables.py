"""What a release says once more in another shape: outcomes, the wide matrix, summaries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from pipelines.release.fingerprint import Contents
from pipelines.release.outcomes import blocks
from pipelines.release.summaries import Summaries, metered
from pipelines.release.tables import GroupWriter
from pipelines.release.wide_labels import WIDE, wide_rows, wide_schema
from pipelines.release.write_table import ids_of
from schemas import OUTCOMES, StoredTable
from schemas.manifest import TableEntry

#: Where summaries lie in a release, each as a Parquet file.
NUMBERED = "numbered"


def derive(
    released: Mapping[str, pa.Table | StoredTable], folder: Path
) -> tuple[TableEntry, dict[str, pa.Table]]:
    """Write `outcomes.parquet`, `labels_wide.parquet` and the summaries of a release's tables.

    One pass over labels and responses by blocks of queries: no more than a block stands
    in memory, apart from summaries of about 50 bytes per query.

    Returns:
        The entry of `outcomes`, and the summaries for the database.
    """
    queries = columns_of(released["queries"], ["query_id", "task"])
    models = columns_of(released["models"], ["model_id"])
    query_ids, model_ids = ids_of(queries, "query_id"), ids_of(models, "model_id")
    names = model_ids.to_pylist()
    responses = folder / "data/responses.parquet" if "responses" in released else None
    counted = Summaries(queries.column("task"), len(names))
    contents = Contents(OUTCOMES.schema)
    rows = 0
    file = f"data/{OUTCOMES.name}.parquet"
    with (
        GroupWriter(folder / WIDE, wide_schema(names), sorted_ids=["query_id"]) as wide,
        GroupWriter(folder / file, OUTCOMES.schema, counting=["query_no"]) as writer,
    ):
        for block in blocks(folder / "data/labels.parquet", responses, query_ids, model_ids):
            writer.write(block.rows)
            contents.update(block.rows)
            rows += block.rows.num_rows
            counted.add(block)
            ids = query_ids.slice(block.first, block.shape[0])
            wide.write(wide_rows(ids, block.score, names))
    entry = TableEntry(
        file=file,
        rows=rows,
        content=contents.full,
        content_without_times=contents.without_times,
        contract=OUTCOMES.version,
    )
    summaries = {**counted.tables(), "metered": metered(responses, model_ids)}
    (folder / NUMBERED).mkdir()
    for name, table in summaries.items():
        with GroupWriter(folder / numbered(name), table.schema) as out:
            out.write(table)
    return entry, summaries


def numbered(name: str) -> str:
    """Where a summary lies in a release."""
    return f"{NUMBERED}/{name}.parquet"


def columns_of(table: pa.Table | StoredTable, names: list[str]) -> pa.Table:
    """Some columns of a table, in memory."""
    return table.read(names) if isinstance(table, StoredTable) else table.select(names)
