"""Tables derived from labels and responses: outcomes (whole, by split), wide matrix, summaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.pipelines.arrays import Ints
from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.io.untrusted import RELEASED, bounded
from routeyard.pipelines.matrix.dense import Matrix
from routeyard.pipelines.release.fingerprint import Content, Contents
from routeyard.pipelines.release.outcomes import blocks
from routeyard.pipelines.release.summaries import Summaries, metered
from routeyard.pipelines.release.tables import ROWS_PER_GROUP, GroupWriter
from routeyard.pipelines.release.write_table import ids_of
from routeyard.schemas import OUTCOMES, StoredTable
from routeyard.schemas.manifest import TableEntry
from routeyard.schemas.split_files import SPLITS, UNASSIGNED, folder_names, split_file

#: Labels once more, one row per query and one column per model.
WIDE = "data/labels_wide.parquet"
#: Folder of the summaries in a release, one Parquet file each.
NUMBERED = "numbered"


def derive(
    released: Mapping[str, pa.Table | StoredTable], folder: Path
) -> tuple[TableEntry, dict[str, pa.Table]]:
    """Write outcomes (whole and by split), `labels_wide.parquet` and summaries of a release.

    One pass over labels and responses by blocks of queries: no more than a block is
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
    splits = OutcomeSplits(
        columns_of(released["splits"], ["scheme", "query_id", "split"]), query_ids
    )
    rows = 0
    file = f"data/{OUTCOMES.name}.parquet"
    with (
        GroupWriter(folder / WIDE, wide_schema(names), sorted_ids=["query_id"]) as wide,
        GroupWriter(folder / file, OUTCOMES.schema, counting=["query_no"]) as writer,
        SplitWriter(splits, folder) as by_split,
    ):
        for block in blocks(folder / "data/labels.parquet", responses, query_ids, model_ids):
            for part in block.rows():
                writer.write(part)
                by_split.write(part)
                contents.update(part)
                rows += part.num_rows
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
    """Path of a summary in a release."""
    return f"{NUMBERED}/{name}.parquet"


def columns_of(table: pa.Table | StoredTable, names: list[str]) -> pa.Table:
    """Some columns of a table, in memory."""
    return table.read(names) if isinstance(table, StoredTable) else table.select(names)


def wide_schema(models: Sequence[str]) -> pa.Schema:
    """`query_id` and a float32 column per model."""
    columns = [pa.field(model, pa.float32()) for model in models]
    return pa.schema([pa.field("query_id", pa.string()), *columns])


def wide_rows(queries: pa.Array, scores: np.ndarray[Any, Any], models: Sequence[str]) -> pa.Table:
    """Labels of some queries as query × model: float32 scores, null where missing."""
    columns = [
        pa.array(scores[:, m].astype(np.float32), from_pandas=True) for m in range(len(models))
    ]
    return pa.Table.from_arrays([queries, *columns], schema=wide_schema(models))


def read_wide(path: Path) -> Matrix:
    """The matrix of scores of `labels_wide.parquet`, float32.

    Raises:
        SourceError: the file is damaged.
    """
    try:
        table = pq.read_table(bounded(path, RELEASED))
        models = table.column_names[1:]
        columns = [table.column(name).to_numpy() for name in models]
        queries = table.column("query_id").to_pylist()
    except (pa.ArrowException, OSError, KeyError) as error:
        raise SourceError(
            f"{path.name} cannot be read: {str(error).splitlines()[0]}",
            where=str(path),
            next_step="find what is wrong with `routeyard verify`, or fetch the file again",
        ) from error
    values = np.empty((len(queries), len(models)), dtype=np.float32)
    for m, column in enumerate(columns):
        values[:, m] = column
    return Matrix(values, queries, models)


class OutcomeSplits:
    """Where each row of `outcomes` goes, by the number of its query.

    Args:
        splits: SPLITS of all schemes.
        query_ids: All ids in released order.
    """

    def __init__(self, splits: pa.Table, query_ids: pa.Array) -> None:
        names = folder_names(set(splits.column("scheme").to_pylist()))
        places = pc.index_in(splits.column("query_id"), value_set=query_ids)
        codes = pc.index_in(splits.column("split"), value_set=pa.array(SPLITS))
        #: Folder → for each query, which of `SPLITS` it is in.
        self._split_of: dict[str, Ints] = {}
        for scheme, folder in names.items():
            here = pc.and_(pc.equal(splits.column("scheme"), scheme), pc.is_valid(places))
            split_of = np.full(len(query_ids), SPLITS.index(UNASSIGNED))
            split_of[places.filter(here).to_numpy()] = codes.filter(here).to_numpy()
            self._split_of[folder] = split_of

    def parts(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """(path in the release, rows of it) of some rows, at most a row group at a time."""
        for start in range(0, rows.num_rows, ROWS_PER_GROUP):
            some = rows.slice(start, ROWS_PER_GROUP)
            numbers = some.column("query_no").to_numpy()
            for folder, split_of in self._split_of.items():
                found = split_of[numbers]
                for code in np.unique(found):
                    yield split_file(folder, SPLITS[code]), some.filter(pa.array(found == code))


class SplitWriter(ExitStack):
    """Writes the files of `OutcomeSplits`. Use as a context manager."""

    def __init__(self, splits: OutcomeSplits, release: Path) -> None:
        super().__init__()
        self._splits, self._release = splits, release
        self._writers: dict[str, GroupWriter] = {}

    def write(self, rows: pa.Table) -> None:
        for name, part in self._splits.parts(rows):
            if name not in self._writers:
                path = self._release / name
                path.parent.mkdir(parents=True, exist_ok=True)
                writer = GroupWriter(path, OUTCOMES.schema, counting=["query_no"])
                self._writers[name] = self.enter_context(writer)
            self._writers[name].write(part)


class SplitContents:
    """Fingerprints of what the files of `OutcomeSplits` have to say."""

    def __init__(self, splits: OutcomeSplits) -> None:
        self._splits = splits
        self._contents: dict[str, Content] = {}

    def update(self, rows: pa.Table) -> None:
        for name, part in self._splits.parts(rows):
            self._contents.setdefault(name, Content(OUTCOMES.schema)).update(part)

    def digests(self) -> dict[str, str]:
        """Path in the release → fingerprint."""
        return {name: content.hexdigest() for name, content in self._contents.items()}
