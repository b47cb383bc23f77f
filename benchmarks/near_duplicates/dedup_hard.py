"""Near-duplicates of vectors that are hard to tell apart, against brute force.

A narrow `cone` in which all cosines are high and none reaches the threshold, a `clump` above
it throughout, and `groups` of 200 whose cosines straddle it. What a build asks for, components
and the number of pairs, beside products in blocks that join what they find. Each side runs in
a separate process, so that its memory is measured alone: what it adds to the vectors and imports.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.near_duplicates.dedup_vectors import BLOCK, peak_mb

Array = np.ndarray[Any, Any]
_ROOT = Path(__file__).parents[2]
#: Shape → smallest and largest angle between a vector and the centre of its group, as shares
#: of the angle at which two opposite ones meet the threshold; and rows of a group, 0 for all.
HARD: dict[str, tuple[float, float, int]] = {
    "cone": (2.0, 3.0, 0),
    "clump": (0.5, 0.9, 0),
    "groups": (0.9, 1.1, 200),
}


def hard_vectors(shape: str, n: int, threshold: float, seed: int) -> Array:
    """(n, 384) unit rows in float32 around one centre, or around one for each group."""
    least, most, size = HARD[shape]
    rng = np.random.default_rng(seed)
    out = np.empty((n, 384), dtype=np.float32)
    for start in range(0, n, size or BLOCK):
        rows = out[start : start + (size or BLOCK)]
        centre = (rng if size else np.random.default_rng([seed, 1])).standard_normal(384)
        centre /= np.linalg.norm(centre)
        away = rng.standard_normal((len(rows), 384))
        away -= (away @ centre)[:, None] * centre
        away /= np.linalg.norm(away, axis=1, keepdims=True)
        # Two rows at this angle from the centre, at right angles to each other around it,
        # have the threshold as their cosine.
        angle = np.arccos(np.sqrt(threshold)) * rng.uniform(least, most, (len(rows), 1))
        rows[:] = np.cos(angle) * centre + np.sin(angle) * away
    return out


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--threshold", type=float, default=0.999)
    parser.add_argument("--shapes", default=",".join(HARD), help="shapes, by commas")
    parser.add_argument("--seed", type=int, default=0)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    return {"n": arguments.n} | {
        name: _shape(name, arguments) for name in HARD if name in arguments.shapes.split(",")
    }


def _shape(shape: str, arguments: argparse.Namespace) -> dict[str, Any]:
    given = [shape, str(arguments.n), str(arguments.threshold), str(arguments.seed)]
    ours, brute = (_apart([side, *given]) for side in ("ours", "brute"))
    if (ours["pairs"], ours["components"]) != (brute["pairs"], brute["components"]):
        raise AssertionError(f"{shape}: brute force finds {brute}, the search {ours}")
    return {
        **ours,
        "bruteforce_seconds": brute["seconds"],
        "bruteforce_added_mb": brute["added_mb"],
        "seconds_over_bruteforce": round(ours["seconds"] / brute["seconds"], 2),
        "memory_over_bruteforce": round(ours["added_mb"] / max(brute["added_mb"], 1), 2),
    }


def _apart(words: list[str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.near_duplicates.dedup_hard", *words]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def ours(vectors: Array, threshold: float) -> tuple[int, Array]:
    """(pairs, component of each row), as a build finds them."""
    from routeyard.pipelines.curate.dedup import group_rows

    n = len(vectors)
    groups = group_rows(vectors, [""] * n, [None] * n, threshold=threshold)
    return groups.pairs, groups.label


def brute(vectors: Array, threshold: float) -> tuple[int, Array]:
    """The same by all products in blocks, decided in float64; edges joined block by block."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, pairs = len(vectors), 0
    label = np.arange(n)
    for i in range(0, n, BLOCK):
        for j in range(i, n, BLOCK):
            cosine = vectors[i : i + BLOCK] @ vectors[j : j + BLOCK].T
            near = cosine >= threshold
            if (np.abs(cosine - threshold) < 1e-5).any():
                wide = vectors[i : i + BLOCK].astype(float), vectors[j : j + BLOCK].astype(float)
                lengths = [np.linalg.norm(part, axis=1) for part in wide]
                near = wide[0] @ wide[1].T / np.outer(*lengths) >= threshold
            near = np.triu(near, 1) if i == j else near
            pairs += int(np.count_nonzero(near))
            a, b = np.nonzero(near)
            graph = coo_array((np.ones(len(a), bool), (label[a + i], label[b + j])), shape=(n, n))
            label = connected_components(graph, directed=False)[1][label]
    return pairs, label


def main() -> None:
    side, shape, n, threshold, seed = sys.argv[1:]
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        method = {"ours": ours, "brute": brute}[side]
        method(hard_vectors("groups", 300, 0.999, 1), 0.999)  # imports, before what is measured
        vectors = hard_vectors(shape, int(n), float(threshold), int(seed))
        before, started = peak_mb(reset=True), time.process_time()
        pairs, label = method(vectors, float(threshold))
        seconds = time.process_time() - started
    figures = {
        "seconds": round(seconds, 3),
        "added_mb": round(peak_mb() - before, 1),
        "pairs": pairs,
        "components": len(np.unique(label)),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
