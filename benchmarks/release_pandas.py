"""The twelve saved queries in pandas, on Parquet and on CSV: what a release is compared with."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np


def peak_mb() -> int:
    """Largest resident size of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of all threads and of child processes, and the result.

    A release answers SQL in a separate process, which lives on between questions.
    """
    started = _cpu()
    result = call()
    return round(_cpu() - started, 3), result


def _cpu() -> float:
    """CPU seconds of this process, of its living descendants and of those that ended."""
    import psutil

    seconds = time.process_time()
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds += ended.ru_utime + ended.ru_stime
    for child in psutil.Process().children(recursive=True):
        try:
            used = child.cpu_times()
        except psutil.NoSuchProcess:
            continue  # it ended meanwhile, and counts as ended next time
        seconds += used.user + used.system + used.children_user + used.children_system
    return seconds


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
    """Rows of a CSV; the frame is dropped, so that one is in memory at a time."""
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
    "hardest": _hardest,
    "unsolved": _unsolved,
    "cheapest_correct": _cheapest,
    "cost_of": _per_correct,
    "contested": _contested,
    "missing": _missing,
    "pairs": _pairs,
    "tokens": _tokens,
    "splits": _splits,
}
