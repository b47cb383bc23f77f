"""A release of N labels: build time, size and the twelve saved queries, beside pandas and CSV.

`python -m benchmarks release --labels 3000000 --json` writes labels of 27 models
(the default) over N / 27 queries, and a response for each, then asks the twelve
saved queries through the release, through pandas on the same Parquet, and
through pandas on plain CSV. Seconds are CPU seconds of the process.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

TASKS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--labels", type=int, default=300_000, help="labels in the release")
    parser.add_argument("--models", type=int, default=27)
    parser.add_argument("--no-pandas", action="store_true", help="leave the baselines out")
    parser.add_argument("--memory-limit", default="8GB", help="of the queries over the release")
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder by default")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    from datacards.card import render
    from pipelines.release import open_release, write_release
    from pipelines.release.saved import SAVED

    folder = Path(tempfile.mkdtemp(prefix="release-bench-", dir=arguments.folder))
    try:
        tables = stream(arguments.labels, arguments.models)
        recipe = {"name": "bench", "version": "1.0.0"}
        build, released = timed(
            partial(write_release, tables, recipe=recipe, root=folder, render_card=render)
        )
        tables, built = {}, peak_mb()
        files = {p.name: p.stat().st_size for p in released.path.rglob("*") if p.is_file()}
        with open_release(released.path, memory_limit=arguments.memory_limit) as opened:
            opening, _ = timed(lambda: opened.sql("SELECT count(*) FROM labels"))
            ours = {
                name: timed(partial(opened.sql, query.sql, timeout_s=3600))
                for name, query in SAVED.items()
            }
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
            "release_peak_rss_mb": peak_mb(),
        }
        if not arguments.no_pandas:
            answers = {name: table.num_rows for name, (_, table) in ours.items()}
            figures |= baselines(released.path, folder, answers)
            total = figures["saved_queries_total_cpu_s"]
            for name in ("pandas", "csv"):
                other = figures[f"{name}_load_cpu_s"] + figures["pandas_queries_cpu_s"]
                figures[f"{name}_over_release"] = round(other / total, 1)
        figures["peak_rss_mb"] = peak_mb()
        return figures
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def peak_mb() -> int:
    """Largest resident size of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of all threads, and the result."""
    started = time.process_time()
    result = call()
    return round(time.process_time() - started, 3), result


def make(labels: int, models: int) -> dict[str, pa.Table]:
    """Labels, responses, queries and models of a seeded artificial benchmark."""
    streamed = stream(labels, models)
    return {
        name: table if isinstance(table, pa.Table) else pa.concat_tables(table.parts())
        for name, table in streamed.items()
    }


def stream(labels: int, models: int) -> dict[str, Any]:
    """The same, with labels and responses one model at a time."""
    from pipelines.release.written import Streamed
    from schemas import MODELS, QUERIES, SPLITS

    n = max(labels // models, 1)
    ids = pa.array([f"q{i:020x}" for i in range(n)])
    names = pa.array([f"model-{m:03d}" for m in range(models)])
    difficulty = 0.5 + np.random.default_rng(0).random(n)
    tasks = pa.array([f"task{i % TASKS}" for i in range(n)])
    text = pa.array([f"Question number {i}?" for i in range(n)])
    split = pa.array([("train", "train", "validation", "test")[i % 4] for i in range(n)])
    source = {"source": "bench", "domain": "math", "scorer": "numeric", "metadata": "{}"}
    asked = {"query_id": ids, "source_id": ids, "task": tasks, "question": text, "prompt": text}
    asked |= {**source, "choices": [], "references": ["1"]}
    skills = np.linspace(0.3, 0.9, models)

    def parts(make_one: Callable[..., pa.Table]) -> Streamed:
        return Streamed(
            lambda: (make_one(ids, names[m], m, skills[m] * difficulty) for m in range(models))
        )

    return {
        "queries": _table(QUERIES, asked, n),
        "models": _table(MODELS, {"model_id": names, "kind": "real", "simulated": True}, models),
        "labels": parts(_labels),
        "responses": parts(_responses),
        "splits": _table(SPLITS, {"scheme": "dense", "query_id": ids, "split": split}, n),
    }


def _labels(ids: pa.Array, name: pa.Scalar, number: int, chance: Any) -> pa.Table:
    from schemas import LABELS

    random = np.random.default_rng((1, number))
    right = random.random(len(ids)) < chance
    columns = {"query_id": ids, "model_id": name, "score": right.astype(float), "correct": right}
    columns |= {"decided_by": "numeric", "contested": random.random(len(ids)) < 0.02}
    return _table(LABELS, {**columns, "n_samples": 1}, len(ids))


def _responses(ids: pa.Array, name: pa.Scalar, number: int, chance: Any) -> pa.Table:
    from schemas import RESPONSES

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
        "cost_source": "price_table",
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


def baselines(release: Path, folder: Path, answers: dict[str, int]) -> dict[str, Any]:
    """The same twelve questions in pandas, loaded from our Parquet and from plain CSV."""
    import pandas as pd
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    columns = {
        "labels": ["query_id", "model_id", "score", "correct", "contested"],
        "queries": ["query_id", "task", "question"],
        "models": ["model_id"],
        "splits": None,
        "responses": [
            "query_id",
            "model_id",
            "prompt_tokens",
            "completion_tokens",
            "cost_usd",
            "latency_s",
        ],
    }

    def parquet() -> dict[str, pd.DataFrame]:
        return {
            name: pd.read_parquet(release / f"data/{name}.parquet", columns=wanted)
            for name, wanted in columns.items()
        }

    for name, wanted in columns.items():
        table = pq.read_table(release / f"data/{name}.parquet", columns=wanted)
        pc.write_csv(table, folder / f"{name}.csv")
        del table
    size = {f"{name}.csv": (folder / f"{name}.csv").stat().st_size for name in columns}
    csv = round(sum(timed(partial(_read, pd, folder / f"{name}.csv"))[0] for name in columns), 3)
    load, frames = timed(parquet)
    queries: dict[str, float] = {}
    for name, ask in IN_PANDAS.items():
        queries[name], answer = timed(partial(ask, frames))
        # The baseline answers the same question, or its time says nothing.
        if len(answer) != answers[name]:
            raise AssertionError(f"{name}: pandas gives {len(answer)} rows, {answers[name]} wanted")
    return {
        "pandas_load_cpu_s": load,
        "csv_load_cpu_s": csv,
        "csv_bytes": size,
        "pandas_queries_cpu_s": round(sum(queries.values()), 3),
        "pandas_each_cpu_s": queries,
    }


def _read(pandas: Any, path: Path) -> int:
    """Rows of a CSV; the frame is dropped, so that one lies in memory at a time."""
    return len(pandas.read_csv(path))


Frames = dict[str, Any]


def _labelled(f: Frames) -> Any:
    return f["labels"].merge(f["queries"], on="query_id")


def _accuracy(f: Frames) -> Any:
    return _labelled(f).groupby(["model_id", "task"])["score"].agg(["count", "mean"])


def _leaderboard(f: Frames) -> Any:
    return f["labels"].groupby("model_id")["score"].agg(["count", "mean", "std"])


def _oracle(f: Frames) -> Any:
    best = f["labels"].groupby("query_id", as_index=False)["score"].max()
    top = best.merge(f["queries"], on="query_id").groupby("task")["score"].mean()
    single = _accuracy(f)["mean"].groupby("task").max()
    return top - single


def _solved(f: Frames) -> Any:
    grouped = f["labels"].groupby("query_id").agg(judged=("score", "count"), by=("correct", "sum"))
    return grouped.merge(f["queries"], on="query_id")


def _hardest(f: Frames) -> Any:
    found = _solved(f).query("by > 0")
    return found.assign(share=found["by"] / found["judged"]).nsmallest(20, "share")


def _unsolved(f: Frames) -> Any:
    return _solved(f).query("by == 0").nlargest(20, "judged")


def _costs(f: Frames) -> Any:
    return f["labels"].merge(
        f["responses"].groupby(["query_id", "model_id"], as_index=False)["cost_usd"].sum(),
        on=["query_id", "model_id"],
    )


def _cheapest(f: Frames) -> Any:
    right = _costs(f).query("correct").sort_values(["query_id", "cost_usd", "model_id"])
    return right.drop_duplicates("query_id").groupby("model_id")["cost_usd"].agg(["count", "mean"])


def _per_correct(f: Frames) -> Any:
    grouped = _costs(f).groupby("model_id").agg(cost=("cost_usd", "sum"), right=("correct", "sum"))
    return grouped["cost"] / grouped["right"]


def _contested(f: Frames) -> Any:
    found = (
        f["labels"][f["labels"]["contested"]].groupby("query_id")["model_id"].agg(["count", list])
    )
    return found.merge(f["queries"], on="query_id").nlargest(20, "count")


def _missing(f: Frames) -> Any:
    counted = f["labels"].groupby("model_id")["score"].count()
    return len(f["queries"]) - f["models"].set_index("model_id").join(counted)["score"]


def _pairs(f: Frames) -> Any:
    wide = f["labels"].pivot(index="query_id", columns="model_id", values="score")
    gains = {}
    for i, a in enumerate(wide.columns):
        for b in wide.columns[i + 1 :]:
            either = np.maximum(wide[a], wide[b]).mean()
            gains[a, b] = either - max(wide[a].mean(), wide[b].mean())
    return sorted(gains.items(), key=lambda item: -item[1])[:20]


def _tokens(f: Frames) -> Any:
    wanted = {"prompt_tokens": "mean", "completion_tokens": "mean", "cost_usd": "sum"}
    return f["responses"].groupby("model_id").agg({**wanted, "latency_s": "median"})


def _splits(f: Frames) -> Any:
    found = f["splits"].merge(f["labels"], on="query_id", how="left")
    return found.groupby(["scheme", "split"]).agg({"query_id": "nunique", "score": "mean"})


#: Saved query → the same in pandas.
IN_PANDAS: dict[str, Callable[[Frames], Any]] = {
    "accuracy": _accuracy,
    "leaderboard": _leaderboard,
    "oracle": _oracle,
    "hardest_solvable": _hardest,
    "unsolved": _unsolved,
    "cheapest_correct": _cheapest,
    "cost_per_correct": _per_correct,
    "contested": _contested,
    "missing": _missing,
    "pairs": _pairs,
    "tokens": _tokens,
    "splits": _splits,
}
