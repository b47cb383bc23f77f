"""Pool pruning: all pairwise similarities and the whole greedy order.

The yardstick in the same run is the plain way on a part of the pool: one Jaccard
per pair with NumPy, and a greedy loop that averages anew at every step, scaled to
the whole pool. `--missing` leaves out that share of labels, which needs the mask.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from routeyard.pipelines.curate.prune import greedy_order, jaccard_fixed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", type=int, default=2_000)
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--missing", type=float, default=0.0)
    parser.add_argument("--trade-off", type=float, default=0.5)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    m, q = arguments.models, arguments.queries
    rng = np.random.default_rng(0)
    correct, known = np.empty((m, q), dtype=bool), np.ones((m, q), dtype=bool)
    hardness = rng.random(q, dtype=np.float32)
    for i in range(m):  # row by row: no float copy of the matrix
        correct[i] = rng.random(q, dtype=np.float32) * 1.4 < rng.uniform(0.3, 0.9) + 0.5 - hardness
        if arguments.missing:
            known[i] = rng.random(q, dtype=np.float32) >= arguments.missing
    idle = _peak_mb(reset=True)
    wall, cpu = time.perf_counter(), time.process_time()
    similarity = jaccard_fixed(correct, known)
    similarity_wall = time.perf_counter() - wall
    accuracy = (correct & known).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    steps = greedy_order(similarity, accuracy, trade_off=arguments.trade_off)
    seconds, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = _peak_mb() - idle
    naive = _naive(correct, known, m)
    return {
        "models": m,
        "queries": q,
        "missing": arguments.missing,
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu, 3),
        "similarity_seconds": round(similarity_wall, 3),
        "greedy_seconds": round(seconds - similarity_wall, 3),
        "removals": len(steps),
        "peak_rss_mb": round(peak, 1),
        "labels_mb": round(2 * correct.nbytes / 2**20, 1),
        "naive_seconds": round(naive, 1),
        "speedup_vs_naive": round(naive / cpu, 1),
    }


def _naive(correct: Any, known: Any, m: int) -> float:
    """CPU-seconds of all pairs one by one, from a seeded sample of 2,000."""
    rng = np.random.default_rng(1)
    sample = rng.integers(0, m, (2_000, 2))
    start = time.process_time()
    for i, j in sample.tolist():
        both = known[i] & known[j]
        either = int(((correct[i] | correct[j]) & both).sum())
        _ = int((correct[i] & correct[j] & both).sum()) / max(either, 1)
    return (time.process_time() - start) * (m * (m - 1) / 2) / len(sample)


def _peak_mb(*, reset: bool = False) -> float:
    """Highest resident memory since the last reset; Linux."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
