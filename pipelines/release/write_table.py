"""Writing a table of a release: checked, ordered, hashed and written in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.release.fingerprint import Contents
from routeyard.pipelines.release.tables import (
    ADD_ONS,
    LARGE,
    GroupWriter,
    cut,
    order_of,
    ordered,
    sorted_ids,
)
from routeyard.schemas import Contract
from routeyard.schemas.errors import ContractError
from routeyard.schemas.manifest import TableEntry


@dataclass(frozen=True)
class Streamed:
    """A table that arrives in parts, each of them in contract form.

    The parts follow each other in the release's order (`tables.ORDER`): for labels and
    responses, one model after the other by id. Rows within a part may be in any order.
    """

    parts: Callable[[], Iterator[pa.Table]]


def by_model(paths: Sequence[Path], contract: Contract) -> Streamed:
    """Labels, responses or outcomes in Parquet files of any order, one model at a time.

    A file that is sorted by model is read once: row groups of other models are skipped.
    """

    def parts() -> Iterator[pa.Table]:
        import pyarrow.dataset as ds

        data = ds.dataset([str(path) for path in paths], schema=contract.schema)
        models: set[str] = set()
        for batch in data.to_batches(columns=["model_id"]):
            models.update(batch.column(0).unique().to_pylist())
        for model in sorted(models, key=str.encode):
            yield data.to_table(filter=ds.field("model_id") == model)

    return Streamed(parts)


def write_table(
    contract: Contract,
    table: pa.Table | Streamed,
    folder: Path,
    *,
    change: Callable[[pa.Table], pa.Table] | None = None,
) -> tuple[TableEntry, pa.Table | None]:
    """Write `data/<name>.parquet`; returns its entry, and a small table that was in memory.

    Args:
        change: What is done to each part before it is written.

    Raises:
        ContractError: rows break the contract, a key is repeated, or parts overlap.
    """
    file = f"data/{contract.name}.parquet"
    contents = Contents(contract.schema)
    rows, last = 0, None
    held: list[pa.Table] = []
    ids = sorted_ids(contract)
    with GroupWriter(folder / file, contract.schema, sorted_ids=ids) as writer:
        for given in cut(contract, table) if isinstance(table, pa.Table) else table.parts():
            part = contract.check(change(given) if change else given, where="release", keyed=False)
            part, unique = ordered(contract, part)
            if not unique:
                contract.check(part, where="release")  # says which keys are repeated
            last = after(contract, part, last)
            contents.update(part)
            writer.write(part)
            rows += part.num_rows
            if isinstance(table, pa.Table) and contract.name not in LARGE:
                held.append(part)
    entry = TableEntry(
        file=file,
        rows=rows,
        content=contents.full,
        content_without_times=contents.without_times,
        kind="add_on" if contract.name in ADD_ONS else "core",
        contract=contract.version,
    )
    return entry, pa.concat_tables(held) if held else None


def after(contract: Contract, part: pa.Table, last: Any) -> Any:
    """The last key of a part, whose first one must come after that of the part before."""
    if not part.num_rows:
        return last
    names = order_of(contract)
    ends = [
        tuple(_sortable(part.column(name)[at].as_py()) for name in names)
        for at in (0, part.num_rows - 1)
    ]
    if last is not None and ends[0] <= last:
        raise ContractError(
            f"table {contract.name!r} arrives in parts that overlap: {ends[0]} after {last}",
            where="release",
            next_step=f"give the parts in order of {', '.join(names)}, each key once",
        )
    return ends[1]


def _sortable(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def ids_of(table: pa.Table, column: str) -> pa.Array:
    """A column of ids as one array of strings."""
    ids = table.column(column).combine_chunks()
    return pc.cast(ids.chunk(0) if isinstance(ids, pa.ChunkedArray) else ids, pa.string())
