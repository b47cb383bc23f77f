"""Near-duplicates over many embedding files, on any task runner and any fsspec storage.

Vectors are scattered into parts (`routeyard.pipelines.curate.search`), every part is
searched by one task, and the pairs are joined. Paths cross task borders; no task
holds more than one shard or one part.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from prefect import flow, task

from routeyard.flows.tracking import Runner, each, on, start
from routeyard.pipelines.common.arrays import Array, Vectors
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.curate.search import (
    Pairs,
    Partition,
    PartPairs,
    join_parts,
    plan_parts,
    search_part,
)
from routeyard.schemas.questions import SIMILARITY

#: Rows drawn from all shards together to place the cuts.
_SAMPLE = 40_000


def draw_sample(shard: str, number: int, rows: int, out: str) -> str:
    """Keep about `rows` vectors of a shard, evenly spaced; returns their file."""
    vectors = read_vectors(shard)
    drawn = vectors[:: max(1, -(-len(vectors) // max(1, rows)))]
    target = f"{out}/sample-{number:06d}.arrow"
    _write(pa.table({"vector": _lists(drawn)}), target)
    return target


def scatter(shard: str, number: int, offset: int, partition: Partition, out: str) -> int:
    """Write each part's members of one shard; returns the rows written, borders included."""
    vectors, written = read_vectors(shard), 0
    for part, rows in partition.members(partition.positions(vectors)):
        if len(rows):
            table = pa.table({"row": rows + offset, "vector": _lists(vectors[rows])})
            _write(table, f"{out}/part-{part:05d}/{number:06d}.arrow")
            written += len(rows)
    return written


def search(part: int, threshold: float, out: str) -> str | None:
    """Search one part; returns the file of its pairs, None for a part without rows."""
    files = _glob(f"{out}/part-{part:05d}/*.arrow")
    if not files:
        return None
    found = search_part(*_gather(files), threshold)
    # Copies travel as pairs without a similarity.
    copies = pa.table({"left": found.copies[:, 0], "right": found.copies[:, 1]})
    target = f"{out}/pairs-{part:05d}.arrow"
    _write(pa.concat_tables([copies, _table(found)], promote_options="default"), target)
    return target


def _table(pairs: Pairs | PartPairs) -> pa.Table:
    return pa.table({name: getattr(pairs, name) for name in ("left", "right", "similarity")})


# Plain functions keep their names: worker processes find them by those.
_OPTIONS: dict[str, Any] = {"retries": 2, "retry_delay_seconds": 5}
sample_task = task(name="sample shard", **_OPTIONS)(draw_sample)
scatter_task = task(name="scatter shard", **_OPTIONS)(scatter)
search_task = task(name="search part", **_OPTIONS)(search)


@flow(name="routeyard-dedup-shards")
def dedup_shards(
    shards: list[str], rows: list[int], out: str, threshold: float = SIMILARITY, parts: int = 16
) -> dict[str, Any]:
    """Near-duplicate pairs over all shards → `<out>/pairs.arrow` (left, right, similarity).

    Args:
        shards: Parquet files with a `vector` column, in row order; any fsspec address.
        rows: Rows of each shard.
        out: Empty folder for parts and pairs; any fsspec address the workers reach.
        parts: Parts wanted; a worker needs room for one of them.

    Returns:
        `pairs` (their file), `parts`, and `scattered`: rows written to them in sum.
    """
    share = _SAMPLE // max(1, len(shards)) + 1
    numbered = list(enumerate(shards))
    drawn = each(
        sample_task,
        [{"shard": shard, "number": i, "rows": share, "out": out} for i, shard in numbered],
    )
    sample = np.concatenate([_matrix(_read(file).column("vector")) for file in drawn])
    planned = plan_parts(sample, threshold, parts)
    offsets = np.concatenate([[0], np.cumsum(rows)[:-1]]).tolist()
    common = {"partition": planned, "out": out}
    written = each(
        scatter_task,
        [{"shard": shard, "number": i, "offset": offsets[i], **common} for i, shard in numbered],
    )
    found = each(
        search_task,
        [{"part": part, "threshold": threshold, "out": out} for part in range(len(planned))],
    )
    pairs = join_parts(sum(rows), [_part_pairs(_read(file)) for file in found if file])
    return {"pairs": _keep(pairs, out), "parts": len(planned), "scattered": sum(written)}


def run_dedup_shards(
    shards: Sequence[str],
    out: str,
    *,
    threshold: float = SIMILARITY,
    parts: int = 16,
    runner: Runner = "threads",
    workers: int = 2,
    dask_address: str | None = None,
) -> Pairs:
    """`dedup_shards` on a runner; the pairs as one search over all rows would give them."""
    running = on(dedup_shards, runner, workers=workers, dask_address=dask_address)
    rows = [count_rows(shard) for shard in shards]
    start(running, shards=list(shards), rows=rows, out=out, threshold=threshold, parts=parts)
    return read_pairs(out)


def count_rows(shard: str) -> int:
    """Rows of a Parquet file, from its footer."""
    import pyarrow.parquet as pq

    with _open(shard, "rb") as file:
        return int(pq.read_metadata(file).num_rows)


def read_vectors(shard: str) -> Vectors:
    """(n, d) float32 of the `vector` column."""
    import pyarrow.parquet as pq

    with _open(shard, "rb") as file:
        return _matrix(pq.read_table(file, columns=["vector"]).column("vector"))


def read_pairs(out: str) -> Pairs:
    """What `dedup_shards` kept."""
    first = _read(f"{out}/first.arrow").column("first").to_numpy()
    pairs = _read(f"{out}/pairs.arrow")
    return Pairs(first, *(pairs.column(n).to_numpy() for n in ("left", "right", "similarity")))


def _keep(pairs: Pairs, out: str) -> str:
    _write(pa.table({"first": pairs.first}), f"{out}/first.arrow")
    _write(_table(pairs), f"{out}/pairs.arrow")
    return f"{out}/pairs.arrow"


def _gather(files: Sequence[str]) -> tuple[Any, Any]:
    """Row numbers and vectors of a part's files, filled in one file at a time."""
    rows = [_read(file, fields=[0]).column("row").to_numpy() for file in files]
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in rows])])
    vectors = None
    for file, offset in zip(files, offsets.tolist(), strict=False):
        block = _matrix(_read(file).column("vector"))
        if vectors is None:
            vectors = np.empty((offsets[-1], block.shape[1]), dtype=np.float32)
        vectors[offset : offset + len(block)] = block
    return np.concatenate(rows), vectors


def _part_pairs(table: pa.Table) -> PartPairs:
    copied = table.column("similarity").is_null()
    copies, near = table.filter(copied), table.filter(pa.compute.invert(copied))
    both = [copies.column(name).to_numpy() for name in ("left", "right")]
    return PartPairs(
        np.stack(both, axis=1),
        *(near.column(name).to_numpy() for name in ("left", "right", "similarity")),
    )


def _lists(vectors: Array) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])


def _matrix(column: pa.ChunkedArray) -> Vectors:
    kind = column.type
    if not pa.types.is_fixed_size_list(kind) or column.null_count:
        raise BadInput(
            f"column 'vector' holds {kind}, not vectors of one width",
            next_step="give the embeddings files that `routeyard build` writes",
        )
    parts = [chunk.flatten().to_numpy().reshape(-1, kind.list_size) for chunk in column.chunks]
    flat = np.concatenate(parts) if parts else np.empty((0, kind.list_size))
    return flat.astype(np.float32, copy=False)


@contextmanager
def _open(address: str, mode: str):  # type: ignore[no-untyped-def]
    import fsspec

    with fsspec.open(address, mode, auto_mkdir=True) as file:
        yield file


def _write(table: pa.Table, address: str) -> None:
    with _open(address, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _read(address: str, fields: list[int] | None = None) -> pa.Table:
    with _open(address, "rb") as file:
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        return pa.ipc.open_file(file, options=options).read_all()


def _glob(pattern: str) -> list[str]:
    import fsspec

    storage, path = fsspec.core.url_to_fs(pattern)
    return [storage.unstrip_protocol(found) for found in sorted(storage.glob(path))]
