"""A release of N labels: build time, size and saved queries, beside pandas, polars and CSV.

`python -m benchmarks release --labels 3000000 --json` writes labels of 27 models
(the default) over N / 27 queries, and a response for each, then asks the twelve
saved queries through the release, through pandas on the same Parquet, and
through pandas on plain CSV. Seconds are CPU seconds of the
process and of the one that answers SQL; the first query starts that one.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.peers import in_polars
from benchmarks.release_pandas import baselines, peak_mb, timed

TASKS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--labels", type=int, default=300_000, help="labels in the release")
    parser.add_argument("--models", type=int, default=27)
    parser.add_argument("--missing", type=float, default=0.0, help="share of labels left out")
    parser.add_argument("--no-pandas", action="store_true", help="leave the baselines out")
    parser.add_argument("--memory-limit", default="8GB", help="of the queries over the release")
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder by default")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    from routeyard.datacards.card import render
    from routeyard.pipelines.release.build import write_release
    from routeyard.pipelines.release.query import SAVED
    from routeyard.pipelines.release.reader import open_release

    folder = Path(tempfile.mkdtemp(prefix="release-bench-", dir=arguments.folder))
    try:
        tables = stream(arguments.labels, arguments.models, arguments.missing)
        recipe = {"name": "bench", "version": "1.0.0"}
        build, released = timed(
            partial(write_release, tables, recipe=recipe, root=folder, render_card=render)
        )
        tables, built = {}, peak_mb()
        files = {p.name: p.stat().st_size for p in released.path.rglob("*") if p.is_file()}
        with open_release(released.path, memory_limit=arguments.memory_limit) as opened:
            opening, _ = _asked(opened, "SELECT count(*) FROM labels")
            ours = {name: _asked(opened, query.sql) for name, query in SAVED.items()}
            asked = round(opened.process.spent["peak_mb"])
            matrix, _ = timed(lambda: opened.matrix("score"))
        figures: dict[str, Any] = {
            "labels": arguments.labels,
            "models": arguments.models,
            "build_cpu_s": build,
            "build_peak_rss_mb": built,
            "bytes": files,
            "beside_responses_mb": round(
                sum(size for name, size in files.items() if name != "responses.parquet") / 1e6, 1
            ),
            "first_query_cpu_s": opening,
            "matrix_cpu_s": matrix,
            "saved_queries_cpu_s": {name: seconds for name, (seconds, _) in ours.items()},
            "saved_queries_total_cpu_s": round(sum(s for s, _ in ours.values()), 3),
            "release_peak_rss_mb": max(peak_mb(), asked),
        }
        if not arguments.no_pandas:
            answers = {name: table.num_rows for name, (_, table) in ours.items()}
            figures |= baselines(released.path, folder, answers)
            figures |= in_polars.baseline(released.path, answers)
            total = figures["saved_queries_total_cpu_s"]
            if "polars_load_cpu_s" in figures:
                other = figures["polars_load_cpu_s"] + figures["polars_queries_cpu_s"]
                figures["polars_over_release"] = round(other / total, 1)
            for name in ("pandas", "csv"):
                other = figures[f"{name}_load_cpu_s"] + figures["pandas_queries_cpu_s"]
                figures[f"{name}_over_release"] = round(other / total, 1)
        figures["peak_rss_mb"] = peak_mb()
        return figures
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _asked(opened: Any, sql: str) -> tuple[float, Any]:
    """CPU seconds here and in the process that answers, and the answer."""
    # The other process counts itself, to the microsecond; `timed` would count it once more.
    before, started = opened.process.spent.get("cpu_s", 0.0), time.process_time()
    answer = opened.sql(sql, timeout_s=3600)
    here = time.process_time() - started
    return round(here + opened.process.spent["cpu_s"] - before, 3), answer


#: Questions that are made at a time.
PART = 1 << 17


def make(labels: int, models: int) -> dict[str, pa.Table]:
    """Labels, responses, queries and models of a seeded artificial benchmark."""
    streamed = stream(labels, models)
    return {
        name: table if isinstance(table, pa.Table) else pa.concat_tables(table.parts())
        for name, table in streamed.items()
    }


def stream(labels: int, models: int, missing: float = 0.0, text: int = 0) -> dict[str, Any]:
    """The same, with labels and responses one model at a time.

    Args:
        missing: share of labels that are missing.
        text: letters in a question, at least.
    """
    from routeyard.pipelines.release.database import Streamed
    from routeyard.schemas import MODELS, QUERIES, SPLITS

    n = max(labels // models, 1)
    ids = pa.array([f"q{i:020x}" for i in range(n)])
    names = pa.array([f"model-{m:03d}" for m in range(models)])
    difficulty = 0.5 + np.random.default_rng(0).random(n)
    tasks = pa.array([f"task{i % TASKS}" for i in range(n)])
    more = " And what follows from it?" * (text // 26)

    def asked(first: int) -> pa.Table:
        rows = range(first, min(first + PART, n))
        asks = pa.array([f"Question number {i}?{more}" for i in rows])
        named, task = ids.slice(first, len(rows)), tasks.slice(first, len(rows))
        columns = {"query_id": named, "source_id": named, "question": asks, "prompt": asks}
        same = {"source": "bench", "domain": "math", "scorer": "numeric", "metadata": "{}"}
        columns |= {"task": task, **same, "choices": [], "references": ["1"]}
        return _table(QUERIES, columns, len(rows))

    split = pa.array([("train", "train", "validation", "test")[i % 4] for i in range(n)])
    skills = np.linspace(0.3, 0.9, models)

    def parts(make_one: Callable[..., pa.Table]) -> Streamed:
        return Streamed(
            lambda: (make_one(ids, names[m], m, skills[m] * difficulty) for m in range(models))
        )

    return {
        "queries": Streamed(lambda: (asked(first) for first in range(0, n, PART))),
        "models": _table(MODELS, {"model_id": names, "kind": "real", "simulated": True}, models),
        "labels": parts(partial(_labels, missing=missing)),
        "responses": parts(_responses),
        "splits": _table(SPLITS, {"scheme": "dense", "query_id": ids, "split": split}, n),
    }


def _labels(ids: pa.Array, name: pa.Scalar, number: int, chance: Any, missing: float) -> pa.Table:
    from routeyard.schemas import LABELS

    random = np.random.default_rng((1, number))
    right = random.random(len(ids)) < chance
    columns = {"query_id": ids, "model_id": name, "score": right.astype(float), "correct": right}
    columns |= {"decided_by": "numeric", "contested": random.random(len(ids)) < 0.02}
    made = _table(LABELS, {**columns, "n_samples": 1}, len(ids))
    return made.filter(pa.array(random.random(len(ids)) >= missing)) if missing else made


def _responses(ids: pa.Array, name: pa.Scalar, number: int, chance: Any) -> pa.Table:
    from routeyard.schemas import RESPONSES

    random, size = np.random.default_rng((2, number)), len(ids)
    columns = {
        "query_id": ids,
        "model_id": name,
        "sample": 0,
        "text": "Answer: 1",
        "status": "ok",
        "prompt_tokens": random.integers(50, 500, size),
        "completion_tokens": random.integers(5, 800, size),
        "cost_usd": random.random(size) * 1e-3 * (1 + number),
        "cost_source": "provider",
        "latency_s": random.random(size),
        "attempts": 1,
    }
    return _table(RESPONSES, columns, size)


def _table(contract: Any, columns: dict[str, Any], rows: int) -> pa.Table:
    arrays = []
    for column in contract.columns:
        value = columns.get(column.name)
        if isinstance(value, pa.Array):
            arrays.append(value)
        elif isinstance(value, np.ndarray):
            arrays.append(pa.array(value, type=column.type))
        else:
            same = value if isinstance(value, pa.Scalar) else pa.scalar(value, type=column.type)
            arrays.append(pa.repeat(same, rows))
    return pa.Table.from_arrays(arrays, schema=contract.schema)
