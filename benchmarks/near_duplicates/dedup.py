"""Exact near-duplicates against blocked brute force, FAISS and SemHash, in one process.

All times are CPU-seconds of one thread. `--vectors` names a Parquet file with a
column `vector` (and `text`, `seen_chars` to time the check of truncated ends);
`--make-vectors` writes one from the questions in ROUTEYARD_DATA. Without it the
vectors are synthetic, and the output says so. Beyond the given vectors, up to `--n`,
come seeded jittered copies whose cosines straddle the threshold.

Above `--whole` rows brute force and FAISS run on a seeded tenth of the row blocks
and their seconds are scaled; recalls are then over the pairs of those rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.near_duplicates.dedup_vectors import BLOCK, make_file, make_vectors, peak_mb
from routeyard.pipelines.curate import search
from routeyard.pipelines.curate.dedup import join
from routeyard.pipelines.curate.search import Pairs, components, near_duplicate_pairs, row_norms

Array = np.ndarray[Any, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--n", type=int, default=35_000)
    parser.add_argument("--copies", type=int, help="copies of each question, at any n")
    parser.add_argument("--threshold", type=float, default=0.999)
    parser.add_argument("--vectors", type=Path, help="Parquet with a column `vector`")
    parser.add_argument("--make-vectors", type=Path, help="embed ROUTEYARD_DATA into this file")
    parser.add_argument("--no-peers", action="store_true", help="only this method")
    parser.add_argument("--whole", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    from threadpoolctl import threadpool_limits

    if arguments.make_vectors:
        return make_file(arguments.make_vectors)
    with threadpool_limits(1):
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> dict[str, Any]:
    threshold, n = arguments.threshold, arguments.n
    near_duplicate_pairs(np.eye(9, dtype=np.float32), 0.9)  # imports, before anything is measured
    vectors, real = make_vectors(
        arguments.vectors, n, arguments.seed, threshold, copies=arguments.copies
    )
    # Building the set leaves freed pages behind: what the search adds, plus the vectors.
    before = peak_mb(reset=True)
    pairs, seconds = _timed(lambda: near_duplicate_pairs(vectors, threshold))
    size = vectors.nbytes / 2**20
    peak = peak_mb() - before + size
    label = components(n, *_links(pairs))
    out: dict[str, Any] = {
        "n": n,
        "real_vectors": real,
        "threshold": threshold,
        "seconds": round(seconds, 3),
        "pairs": pairs.count(),
        "components": int(label.max()) + 1,
        "largest_component": int(np.bincount(label).max()),
        "peak_rss_mb": round(peak, 1),
        "vectors_mb": round(size, 1),
        "peak_over_vectors": round(peak / size, 2),
    }
    if arguments.vectors and real >= min(n, real):
        out |= _tails(arguments.vectors, vectors[:real], threshold)
    if arguments.no_peers:
        return out
    rows = _chosen_rows(n, arguments.whole, arguments.seed)
    share = len(rows) / n
    truth, brute = _timed(lambda: _brute_force(vectors, rows, threshold))
    ours = _touching(pairs, rows, n)
    out |= {
        "recall": _recall(ours, truth),
        "false_pairs": len(np.setdiff1d(ours, truth)),
        "bruteforce_seconds": round(brute / share, 2),
        "bruteforce_scaled": share < 1,
        "speedup_vs_bruteforce": round(brute / share / seconds, 1),
    }
    for name, peer in {"faiss": _faiss, "semhash": _semhash}.items():
        try:
            peer_out = peer(vectors, rows, threshold, truth, n, label)
        except ImportError:
            out[f"{name}_seconds"] = None  # not installed: pip install routeyard[peers]
            continue
        out |= {f"{name}_{key}": value for key, value in peer_out.items()}
        out[f"speedup_vs_{name}"] = round(peer_out["seconds"] / seconds, 1)
    return out


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def _brute_force(vectors: Array, rows: Array, threshold: float) -> Array:
    """Sorted codes i·n + j of the pairs i < j with i or j in `rows`, decided in float64.

    A full run multiplies each pair of blocks once. A partial one multiplies the
    chosen rows with all rows at or after them, which is the same work per row.
    """
    n, found = len(vectors), []
    norms = row_norms(vectors)
    for start in range(0, len(rows), BLOCK):
        i = rows[start : start + BLOCK]
        block = vectors[i]
        for other in range(0, n, BLOCK):
            if len(rows) == n and other + BLOCK <= i[0]:
                continue
            if len(rows) < n and other % (2 * BLOCK):  # half of the blocks: the same work
                continue
            a, b = np.nonzero(block @ vectors[other : other + BLOCK].T >= threshold - 1e-5)
            found.append((i[a], b + other))
    left = np.concatenate([a for a, _ in found])
    right = np.concatenate([b for _, b in found])
    upper = left != right
    low, high = np.minimum(left, right)[upper], np.maximum(left, right)[upper]
    sure = search.cosines(vectors, norms, low, high) >= threshold
    return np.unique(low[sure] * n + high[sure])


def _touching(pairs: Any, rows: Array, n: int) -> Array:
    """Our pairs that the brute force over `rows` had a chance to see, as codes."""
    every = every_pair(pairs)
    if len(rows) == n:
        found: Array = every[:, 0] * n + every[:, 1]
        return found
    inside = np.zeros(n, dtype=bool)
    inside[rows] = True
    even = (np.arange(n) // BLOCK) % 2 == 0
    i, j = every[:, 0], every[:, 1]
    seen = (inside[i] & even[j]) | (inside[j] & even[i])
    return np.unique(i[seen] * n + j[seen])


def _recall(found: Array, truth: Array) -> float:
    """Share of the true pairs that were found; 1 without any to find."""
    if not len(truth):
        return 1.0
    return round(len(np.intersect1d(found, truth)) / len(truth), 6)


def _faiss(
    vectors: Array, rows: Array, threshold: float, truth: Array, n: int, label: Array
) -> dict[str, Any]:
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)

    def search() -> Array:
        found = []
        for start in range(0, len(rows), BLOCK):
            i = rows[start : start + BLOCK]
            limits, _, j = index.range_search(vectors[i], threshold)
            found.append(np.stack([np.repeat(i, np.diff(limits).astype(np.int64)), j], axis=1))
        every = np.concatenate(found)
        every = every[every[:, 0] != every[:, 1]]
        return np.unique(every.min(axis=1) * n + every.max(axis=1))

    found, seconds = _timed(search)
    return {
        "seconds": round(seconds * n / len(rows), 2),
        "recall": _recall(found, truth),
        "scaled": len(rows) < n,
    }


def _semhash(
    vectors: Array, rows: Array, threshold: float, truth: Array, n: int, label: Array
) -> dict[str, Any]:
    """Recall over questions to remove: SemHash removes greedily and has no components."""
    from semhash import SemHash

    class Fixed:
        def encode(self, inputs: Any, **kwargs: Any) -> Array:
            return vectors[[int(text) for text in inputs]]

    records = [str(i) for i in range(n)]

    def search() -> Any:
        index = SemHash.from_embeddings(embeddings=vectors, records=records, model=Fixed())
        return index.self_deduplicate(threshold=threshold)

    result, seconds = _timed(search)
    kept = len(result.selected)
    removable = n - (int(label.max()) + 1)
    return {
        "seconds": round(seconds, 2),
        "removed": n - kept,
        "removable": removable,
        "recall": round((n - kept) / max(1, removable), 6),
    }


def _links(pairs: Any) -> tuple[Array, Array]:
    copies = np.flatnonzero(pairs.first != np.arange(len(pairs.first)))
    return (
        np.concatenate([pairs.left, pairs.first[copies]]),
        np.concatenate([pairs.right, copies]),
    )


def _tails(path: Path, vectors: Array, threshold: float) -> dict[str, Any]:
    names = pq.read_schema(path).names
    if not {"text", "seen_chars"} <= set(names):
        return {}
    table = pq.read_table(path, columns=["text", "seen_chars"])[: len(vectors)]
    texts, seen = table.column("text").to_pylist(), table.column("seen_chars").to_pylist()
    pairs = near_duplicate_pairs(vectors, threshold)
    groups, seconds = _timed(lambda: join(pairs, texts, seen))
    return {
        "truncated": sum(value is not None for value in seen),
        "unseen_seconds": round(seconds, 3),
        "real_pairs": groups.pairs,
        "real_pairs_counted": groups.pairs_counted,
    }


def _chosen_rows(n: int, whole: int, seed: int) -> Array:
    if n <= whole:
        return np.arange(n)
    blocks = np.arange(0, n, BLOCK)
    chosen = np.random.default_rng(seed).choice(blocks, len(blocks) // 10, replace=False)
    return np.concatenate([np.arange(b, min(b + BLOCK, n)) for b in np.sort(chosen)])


def every_pair(pairs: Pairs) -> Any:
    """(count, 2) every pair of rows, smaller row first, in lexicographic order.

    c copies of a vector make c(c−1)/2 pairs: for small sets only.
    """
    order = np.argsort(pairs.first, kind="stable")
    values, starts = np.unique(pairs.first[order], return_index=True)
    members = dict(zip(values.tolist(), np.split(order, starts[1:]), strict=True))
    blocks = [
        np.stack([rows[a] for a in np.triu_indices(len(rows), 1)], axis=1)
        for rows in members.values()
    ]
    for left, right in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True):
        grid = np.meshgrid(members[left], members[right], indexing="ij")
        blocks.append(np.stack([part.ravel() for part in grid], axis=1))
    every = np.concatenate(blocks) if blocks else np.empty((0, 2), dtype=np.int64)
    every = np.sort(every, axis=1)
    return every[np.lexsort((every[:, 1], every[:, 0]))]
