"""Exact near-duplicates over shards and slabs against one search over all vectors.

The vectors are synthetic, with the power-law spectrum of sentence embeddings,
planted copies and neighbours on both sides of the threshold. `--runner dask`
needs a Prefect server (`PREFECT_API_URL`) and runs two worker processes.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--shards", type=int, default=6)
    parser.add_argument("--slabs", type=int, default=6)
    parser.add_argument("--runner", choices=["threads", "dask"], default="threads")
    parser.add_argument("--folder", type=Path, help="where shards and slabs lie; removed after")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="dedup-shards-", dir=arguments.folder))
    try:
        return _run(arguments, folder)
    finally:
        shutil.rmtree(folder)


def _run(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    from flows.dedup_shards import read_vectors, run_dedup_shards
    from pipelines.curate.near_duplicates import near_duplicate_pairs

    shards = make_shards(arguments.rows, arguments.width, arguments.shards, folder / "in")
    before, started = _cpu(), time.monotonic()
    parted = run_dedup_shards(
        shards, str(folder / "out"), slabs=arguments.slabs, runner=arguments.runner, workers=2
    )
    parted_s, parted_cpu = time.monotonic() - started, _cpu() - before
    scattered = sum(f.stat().st_size for f in (folder / "out").rglob("slab-*/*.arrow"))
    before, started = _cpu(), time.monotonic()
    vectors = np.concatenate([read_vectors(shard) for shard in shards])
    whole = near_duplicate_pairs(vectors, 0.999)
    whole_s, whole_cpu = time.monotonic() - started, _cpu() - before
    equal = all(
        np.array_equal(getattr(parted, name), getattr(whole, name))
        for name in ("first", "left", "right", "similarity")
    )
    return {
        "rows": arguments.rows,
        "runner": arguments.runner,
        "slabs": arguments.slabs,
        "equal": equal,
        "pairs": int(whole.count()),
        "slabs_wall_s": round(parted_s, 2),
        "slabs_cpu_s": round(parted_cpu, 2),
        "one_search_wall_s": round(whole_s, 2),
        "one_search_cpu_s": round(whole_cpu, 2),
        "rows_scattered_per_row": round(scattered / (vectors.nbytes + 8 * len(vectors)), 3),
        "slabs_cpu_s_per_million": round(parted_cpu / arguments.rows * 1e6, 1),
    }


def make_shards(rows: int, width: int, count: int, folder: Path) -> list[str]:
    """Parquet files of unit vectors; one in twenty has a neighbour or copy in another shard."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    scale = (1 / np.sqrt(np.arange(1, width + 1))).astype(np.float32)
    source = (
        np.random.default_rng(0).normal(size=(rows // 20 + 1, width)).astype(np.float32) * scale
    )
    source /= np.linalg.norm(source, axis=1, keepdims=True)
    addresses = []
    for number, size in enumerate(np.diff(np.linspace(0, rows, count + 1).astype(int))):
        draw = np.random.default_rng(number + 1)
        part = draw.standard_normal((size, width), dtype=np.float32) * scale
        part /= np.linalg.norm(part, axis=1, keepdims=True)
        again = draw.choice(size, size // 20, replace=False)
        step = draw.standard_normal((len(again), width), dtype=np.float32)
        step /= np.linalg.norm(step, axis=1, keepdims=True)
        distance = draw.choice(np.float32([0, 0.01, 0.0446, 0.0448, 0.06]), (len(again), 1))
        part[again] = source[draw.integers(0, len(source), len(again))] + distance * step
        lists = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), width)
        path = folder / f"{number:04d}.parquet"
        pq.write_table(pa.table({"vector": lists}), path, compression=None, use_dictionary=False)
        addresses.append(str(path))
    return addresses


def _cpu() -> float:
    mine = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return mine.ru_utime + mine.ru_stime + children.ru_utime + children.ru_stime
