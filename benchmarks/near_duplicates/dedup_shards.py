"""Exact near-duplicates over shards and parts, on a task runner, against one search.

The vectors are made as for `dedup` (`--vectors` names real ones; seeded copies
straddle the threshold), with one row in a hundred repeated byte for byte. They are
written to disk as a memory map, which the one search reads, and as Parquet shards,
which two workers read. Room wanted on disk: about 4 × n × 1.5 kB.

A temporary Prefect server is started unless PREFECT_API_URL names one. `*_peak_mb` is
the largest anonymous memory of any one process, pages of mapped files left out.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.near_duplicates.dedup_vectors import BLOCK, make_vectors

Array = np.ndarray[Any, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--n", type=int, default=30_000)
    parser.add_argument("--copies", type=int, help="copies of each question, at any n")
    parser.add_argument("--threshold", type=float, default=0.999)
    parser.add_argument("--vectors", type=Path, help="Parquet with a column `vector`")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shards", type=int, default=6)
    parser.add_argument("--parts", type=int, default=6)
    parser.add_argument("--runner", choices=["threads", "dask"], default="threads")
    parser.add_argument("--folder", type=Path, help="where all files are; removed after")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    # One thread for each process, also for the workers that inherit this.
    os.environ["OMP_NUM_THREADS"] = "1"
    from threadpoolctl import threadpool_limits

    folder = Path(tempfile.mkdtemp(prefix="dedup-shards-", dir=arguments.folder))
    try:
        with threadpool_limits(1):
            return _run(arguments, folder)
    finally:
        shutil.rmtree(folder)


def _run(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    from routeyard.flows.tasks.dedup_shards import run_dedup_shards
    from routeyard.pipelines.curate.search import near_duplicate_pairs

    n, threshold = arguments.n, arguments.threshold
    vectors, real = _mapped(arguments, folder / "vectors.f32")
    shards = write_shards(vectors, arguments.shards, folder / "in")
    out = folder / "out"
    with _server():
        parted, by_parts = _measured(
            lambda: run_dedup_shards(
                shards,
                str(out),
                threshold=threshold,
                parts=arguments.parts,
                runner=arguments.runner,
                workers=2,
            )
        )
    sizes = [_rows(part) for part in sorted(out.glob("part-*"))]
    whole, at_once = _measured(lambda: near_duplicate_pairs(vectors, threshold))
    names = ("first", "left", "right", "similarity")
    return {
        "n": n,
        "real_vectors": real,
        "threshold": threshold,
        "runner": arguments.runner,
        "equal": all(np.array_equal(getattr(parted, a), getattr(whole, a)) for a in names),
        "pairs": int(whole.count()),
        "copies": int((whole.first != np.arange(n)).sum()),
        "parts": len(sizes),
        "largest_part": max(sizes),
        "rows_searched_per_row": round(sum(sizes) / n, 3),
        "written_gb": round(sum(f.stat().st_size for f in out.rglob("*.arrow")) / 1e9, 2),
        "vectors_gb": round(vectors.nbytes / 1e9, 2),
        **{f"parts_{key}": value for key, value in by_parts.items()},
        **{f"one_search_{key}": value for key, value in at_once.items()},
    }


def _mapped(arguments: argparse.Namespace, path: Path) -> tuple[Array, int]:
    """The vectors as a memory map, and how many of them are real."""

    def allocate(shape: tuple[int, int]) -> Array:
        return np.memmap(path, dtype=np.float32, mode="w+", shape=shape)

    n, seed = arguments.n, arguments.seed
    vectors, real = make_vectors(
        arguments.vectors, n, seed, arguments.threshold, allocate, arguments.copies
    )
    draw = np.random.default_rng(seed + 1)
    again = real + draw.choice(n - real, (n - real) // 100, replace=False)
    origin = draw.integers(0, n, len(again))
    for start in range(0, len(again), BLOCK):
        part = slice(start, start + BLOCK)
        vectors[again[part]] = vectors[origin[part]]
    return vectors, real


def write_shards(vectors: Array, count: int, folder: Path) -> list[str]:
    """The rows in order, in so many Parquet files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    addresses = []
    for number, part in enumerate(np.array_split(vectors, count)):
        flat = pa.array(np.ascontiguousarray(part).ravel())
        table = pa.table({"vector": pa.FixedSizeListArray.from_arrays(flat, part.shape[1])})
        path = folder / f"{number:04d}.parquet"
        pq.write_table(table, path, compression=None, use_dictionary=False)
        addresses.append(str(path))
    return addresses


def _rows(part: Path) -> int:
    import pyarrow as pa

    total = 0
    for path in part.glob("*.arrow"):
        with pa.memory_map(str(path)) as file:
            total += pa.ipc.open_file(file).read_all().num_rows
    return total


@contextmanager
def _server() -> Iterator[None]:
    """The Prefect server that is configured, or one for this run."""
    from routeyard.flows.tracking import api_configured

    if api_configured():
        yield
        return
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=180):
        yield


def _measured(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Result; wall seconds, CPU-seconds with ended children, largest memory of a process."""
    peak = [0.0]
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(peak, over), daemon=True)
    watcher.start()
    before, started = _cpu(), time.monotonic()
    try:
        result = work()
    finally:
        over.set()
        watcher.join()
    return result, {
        "wall_s": round(time.monotonic() - started, 1),
        "cpu_s": round(_cpu() - before, 1),
        "peak_mb": round(peak[0] / 2**20, 1),
    }


def _watch(peak: list[float], over: threading.Event) -> None:
    import psutil

    me = psutil.Process()
    while not over.wait(0.1):
        for process in [me, *me.children(recursive=True)]:
            try:
                used = process.memory_info()
            except psutil.NoSuchProcess:
                continue
            peak[0] = max(peak[0], used.rss - used.shared)


def _cpu() -> float:
    mine = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return mine.ru_utime + mine.ru_stime + children.ru_utime + children.ru_stime
