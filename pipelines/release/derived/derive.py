"""What a release says once more in another shape: outcomes, the wide matrix, summaries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipelines.release.derived.outcomes import blocks
from pipelines.release.derived.summaries import Summaries
from pipelines.release.fingerprint import Content
from pipelines.release.matrix import WIDE, wide_rows, wide_schema
from pipelines.release.tables import GroupWriter
from pipelines.release.written import ids_of
from schemas import OUTCOMES, Stored
from schemas.manifest import MEASURED_COLUMNS, TableEntry


def derive(
    released: Mapping[str, pa.Table | Stored], folder: Path
) -> tuple[TableEntry, dict[str, pa.Table]]:
    """Write `outcomes.parquet` and `labels_wide.parquet` from the tables in a folder.

    One pass over labels and responses by blocks of queries: no more than a block stands
    in memory, apart from summaries of about 50 bytes per query.

    Returns:
        The entry of `outcomes`, and the summaries for the database.
    """
    queries, models = _small(released["queries"]), _small(released["models"])
    query_ids, model_ids = ids_of(queries, "query_id"), ids_of(models, "model_id")
    names = model_ids.to_pylist()
    responses = folder / "data/responses.parquet" if "responses" in released else None
    summaries = Summaries(queries.column("task"), len(names))
    full, untimed = Content(OUTCOMES.schema), Content(OUTCOMES.schema, without=MEASURED_COLUMNS)
    rows = 0
    file = f"data/{OUTCOMES.name}.parquet"
    writer: GroupWriter | None = None
    with GroupWriter(folder / WIDE, wide_schema(names)) as wide:
        try:
            for block in blocks(folder / "data/labels.parquet", responses, query_ids, model_ids):
                if writer is None:
                    split = _planes(block.rows)
                    writer = GroupWriter(folder / file, OUTCOMES.schema, split=split)
                writer.write(block.rows)
                full.update(block.rows)
                untimed.update(block.rows)
                rows += block.rows.num_rows
                summaries.add(block)
                ids = query_ids.slice(block.first, block.shape[0])
                wide.write(wide_rows(ids, block.score, names))
            writer = writer or GroupWriter(folder / file, OUTCOMES.schema)
            writer.close()
        except BaseException:
            if writer is not None:
                writer.abandon()
            raise
    entry = TableEntry(
        file=file,
        rows=rows,
        content=full.hexdigest(),
        content_without_times=untimed.hexdigest(),
        contract=OUTCOMES.version,
    )
    return entry, summaries.tables()


def _small(table: pa.Table | Stored) -> pa.Table:
    return table.read() if isinstance(table, Stored) else table


def _planes(rows: pa.Table) -> list[str]:
    """Float columns that hardly repeat in the first block: a dictionary would not help them."""
    found = []
    for name in ("cost_usd", "latency_s"):
        values = rows.column(name).drop_null().slice(0, 1 << 17)
        if len(values) and len(np.unique(values.to_numpy())) > len(values) // 2:
            found.append(name)
    return found
