"""The twelve saved queries in polars, on the Parquet of a release."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.release_pandas import timed

Frames = dict[str, Any]


def baseline(release: Path, answers: dict[str, int]) -> dict[str, Any]:
    """CPU seconds of loading and of the twelve answers; nothing where polars is not installed.

    Raises:
        AssertionError: an answer has other rows than the release's.
    """
    try:
        import polars as pl
    except ImportError:
        return {}
    names = ("labels", "queries", "models", "splits", "responses")

    def load() -> Frames:
        unread = {"queries": ["metadata", "choices", "references"], "responses": ["text"]}
        return {
            name: pl.scan_parquet(release / f"data/{name}.parquet")
            .drop(unread.get(name, []), strict=False)
            .collect()
            for name in names
        }

    seconds, frames = timed(load)
    each: dict[str, float] = {}
    for name, ask in QUERIES.items():
        each[name], answer = timed(partial(ask, pl, frames))
        if len(answer) != answers[name]:
            raise AssertionError(f"{name}: polars gives {len(answer)} rows, {answers[name]} wanted")
    return {
        "polars_load_cpu_s": seconds,
        "polars_queries_cpu_s": round(sum(each.values()), 3),
        "polars_each_cpu_s": each,
    }


def _labelled(f: Frames) -> Any:
    return f["labels"].join(f["queries"].select("query_id", "task"), on="query_id")


def _accuracy(pl: Any, f: Frames) -> Any:
    score = pl.col("score")
    return _labelled(f).group_by("model_id", "task").agg(n=score.count(), mean=score.mean())


def _leaderboard(pl: Any, f: Frames) -> Any:
    score = pl.col("score")
    return f["labels"].group_by("model_id").agg(n=score.count(), mean=score.mean(), sd=score.std())


def _oracle(pl: Any, f: Frames) -> Any:
    best = _labelled(f).group_by("query_id", "task").agg(pl.col("score").max())
    top = best.group_by("task").agg(top=pl.col("score").mean())
    single = _accuracy(pl, f).group_by("task").agg(single=pl.col("mean").max())
    return top.join(single, on="task")


def _solved(pl: Any, f: Frames) -> Any:
    grouped = f["labels"].group_by("query_id")
    found = grouped.agg(judged=pl.col("score").count(), by=pl.col("correct").sum())
    return found.join(f["queries"], on="query_id")


def _hardest(pl: Any, f: Frames) -> Any:
    found = _solved(pl, f).filter(pl.col("by") > 0)
    return found.with_columns(share=pl.col("by") / pl.col("judged")).bottom_k(20, by="share")


def _unsolved(pl: Any, f: Frames) -> Any:
    return _solved(pl, f).filter(pl.col("by") == 0).top_k(20, by="judged")


def _costs(pl: Any, f: Frames) -> Any:
    pair = ["query_id", "model_id"]
    return f["labels"].join(f["responses"].group_by(pair).agg(pl.col("cost_usd").sum()), on=pair)


def _cheapest(pl: Any, f: Frames) -> Any:
    right = _costs(pl, f).filter("correct").sort("query_id", "cost_usd", "model_id")
    first = right.unique("query_id", keep="first", maintain_order=True)
    return first.group_by("model_id").agg(n=pl.len(), cost=pl.col("cost_usd").mean())


def _per_correct(pl: Any, f: Frames) -> Any:
    cost, right = pl.col("cost_usd").sum(), pl.col("correct").sum()
    return _costs(pl, f).group_by("model_id").agg(each=cost / right)


def _contested(pl: Any, f: Frames) -> Any:
    found = f["labels"].filter("contested").group_by("query_id").agg("model_id", n=pl.len())
    return found.join(f["queries"], on="query_id").top_k(20, by="n")


def _missing(pl: Any, f: Frames) -> Any:
    counted = f["labels"].group_by("model_id").agg(n=pl.col("score").count())
    joined = f["models"].select("model_id").join(counted, on="model_id", how="left")
    return joined.with_columns(missing=len(f["queries"]) - pl.col("n"))


def _pairs(pl: Any, f: Frames) -> Any:
    wide = f["labels"].pivot("model_id", index="query_id", values="score").drop("query_id")
    gains = []
    for i, a in enumerate(wide.columns):
        for b in wide.columns[i + 1 :]:
            either = pl.max_horizontal(a, b).mean()
            gains.append(
                (either - pl.max_horizontal(pl.col(a).mean(), pl.col(b).mean())).alias(f"{a} {b}")
            )
    found = wide.select(gains).transpose(include_header=True)
    return found.top_k(20, by="column_0")


def _tokens(pl: Any, f: Frames) -> Any:
    columns = ("prompt_tokens", "completion_tokens")
    wanted = [pl.col(name).mean() for name in columns]
    grouped = f["responses"].group_by("model_id")
    return grouped.agg(*wanted, pl.col("cost_usd").sum(), pl.col("latency_s").median())


def _splits(pl: Any, f: Frames) -> Any:
    found = f["splits"].join(f["labels"], on="query_id", how="left")
    wanted = pl.col("query_id").n_unique(), pl.col("score").mean()
    return found.group_by("scheme", "split").agg(*wanted)


#: Saved query → the same in polars.
QUERIES: dict[str, Callable[[Any, Frames], Any]] = {
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
