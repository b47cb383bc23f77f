"""Tables derived from labels and responses: outcomes (whole, by split), wide matrix, summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.pipelines.common.arrays import Ints
from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.common.matrix import Matrix
from routeyard.pipelines.common.sql import Runner, runner
from routeyard.pipelines.common.untrusted import RELEASED, bounded
from routeyard.pipelines.release.manifest import Contents
from routeyard.pipelines.release.tables import GroupWriter
from routeyard.schemas import OUTCOMES, RESPONSES, StoredTable
from routeyard.schemas.release import SPLITS, UNASSIGNED, TableEntry, folder_names, split_file

Tables = Mapping[str, pa.Table | StoredTable]

#: Labels once more, one row per query and one column per model.
WIDE = "data/labels_wide.parquet"
#: Folder of the summaries in a release, one Parquet file each.
NUMBERED = "numbered"
#: Counts per query, model and task that the saved queries start from.
SUMMARIES = ("per_query", "cheapest", "per_task", "leads", "per_model", "bits", "metered")
#: Pairs of the wide matrix that are in memory at a time.
_PAIRS = 1 << 22


def derive(released: Tables, folder: Path) -> TableEntry:
    """Write outcomes (whole and by split), `labels_wide.parquet` and summaries of a release.

    A label or response of a query or model that is not in the release has no number, so it has
    no outcome; `verify` names it.

    Returns:
        The entry of `outcomes`.
    """
    file = f"data/{OUTCOMES.name}.parquet"
    for name in ("data", NUMBERED):
        (folder / name).mkdir(parents=True, exist_ok=True)
    inputs = {name: released[name] for name in ("queries", "models", "labels", "splits")}
    inputs["responses"] = released.get("responses", RESPONSES.empty())
    with runner(Path(__file__).with_name("derived.sql"), inputs) as run:
        run.keep("query_numbers", "model_numbers", "answered")
        queries, models = (
            run.connection.table(f"{of}_numbers")
            .order(f"{of}_no")
            .to_arrow_table()
            .column(f"{of}_id")
            for of in ("query", "model")
        )
        contents = Contents(OUTCOMES.schema)
        rows = 0
        with (
            GroupWriter(folder / file, OUTCOMES.schema, counting=["query_no"]) as whole,
            _by_split(run, folder, len(queries)) as split,
        ):
            for batch in run.batches("outcomes"):
                part = pa.Table.from_batches([batch])
                for of, ids in (("query", queries), ("model", models)):
                    part = part.append_column(f"{of}_id", ids.take(part.column(f"{of}_no")))
                part = part.select(OUTCOMES.column_names).cast(OUTCOMES.schema)
                whole.write(part)
                split(part)
                contents.update(part)
                rows += part.num_rows
        run.give(stored=StoredTable(folder / file))
        _write_wide(run, folder / WIDE, queries, models.to_pylist())
        run.keep("per_query", "tasks")
        for name in SUMMARIES:
            table = run.table(name)
            with GroupWriter(folder / numbered(name), table.schema) as out:
                out.write(table)
    return TableEntry(
        file=file,
        rows=rows,
        content=contents.full,
        content_without_times=contents.without_times,
        contract=OUTCOMES.version,
    )


@contextmanager
def _by_split(run: Runner, folder: Path, queries: int) -> Iterator[Callable[[pa.Table], None]]:
    """Writes rows of `outcomes` to the files of their splits, by the number of their query."""
    places = run.table("places")
    codes = pc.index_in(places.column("split"), value_set=pa.array(SPLITS)).to_numpy()
    numbers, schemes = places.column("query_no").to_numpy(), places.column("scheme")
    split_of: dict[str, Ints] = {}
    for scheme, name in folder_names(set(schemes.to_pylist())).items():
        here = pc.equal(schemes, scheme).to_numpy()
        split_of[name] = np.full(queries, SPLITS.index(UNASSIGNED))
        split_of[name][numbers[here]] = codes[here]
    writers: dict[str, GroupWriter] = {}
    with ExitStack() as stack:

        def write(rows: pa.Table) -> None:
            for name, split in split_of.items():
                result = split[rows.column("query_no").to_numpy()]
                for code in np.unique(result):
                    file = split_file(name, SPLITS[code])
                    if file not in writers:
                        (folder / file).parent.mkdir(parents=True, exist_ok=True)
                        writer = GroupWriter(folder / file, OUTCOMES.schema, counting=["query_no"])
                        writers[file] = stack.enter_context(writer)
                    writers[file].write(rows.filter(pa.array(result == code)))

        yield write


def _write_wide(run: Runner, path: Path, queries: pa.ChunkedArray, models: Sequence[str]) -> None:
    """Labels as query × model: float32 scores, null where missing."""
    schema = pa.schema([("query_id", pa.string()), *((name, pa.float32()) for name in models)])
    step = max(_PAIRS // max(len(models), 1), 1)
    with GroupWriter(path, schema, sorted_ids=["query_id"]) as out:
        for first in range(0, len(queries), step):
            ids = queries.slice(first, step)
            rows = run.table("scores", first=first, beyond=first + len(ids))
            scores = np.full((len(models), len(ids)), np.nan, dtype=np.float32)
            query, model, score = (column.to_numpy() for column in rows.columns)
            scores[model, query - first] = score
            columns = [pa.array(item, from_pandas=True) for item in scores]
            out.write(pa.Table.from_arrays([ids, *columns], schema=schema))


def numbered(name: str) -> str:
    """Path of a summary in a release."""
    return f"{NUMBERED}/{name}.parquet"


def columns_of(table: pa.Table | StoredTable, names: list[str]) -> pa.Table:
    """Some columns of a table, in memory."""
    return table.read(names) if isinstance(table, StoredTable) else table.select(names)


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
