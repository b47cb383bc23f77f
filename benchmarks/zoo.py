"""The zoo on real matrices: `python -m benchmarks zoo NAME --out FOLDER`.

NAME is `routerdc`, `bbh`, `mmlu_pro` or `gsm8k`; the data are those of ROUTEYARD_DATA.
Each name builds labels and splits from the recorded outcomes, runs the zoo's full
protocol and writes its tables; RouterDC is also read off task by task, as its paper does.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.evaluate.core import Core

#: Tasks of RouterDC's table that are in English, and the train questions of all.
ENGLISH = ("arc_challenge", "gsm8k", "humaneval", "mmlu")


def core_of(ids: list[str], models: list[str], labels: Any, tasks: list[str], splits: Any) -> Core:
    """A core without costs; rows in order of their ids, as a release has them."""
    order = np.argsort(np.array(ids))
    at = np.argsort(np.array(models))
    return Core(
        query_ids=tuple(ids[i] for i in order),
        model_ids=tuple(models[k] for k in at),
        labels=np.asarray(labels, dtype=np.float64)[order][:, at],
        costs={},
        tasks=np.array(tasks)[order],
        domains=np.array(tasks)[order],
        splits={"dense": np.asarray(splits, dtype="<U10")[order]},
        groups=np.arange(len(ids)),
    )


def drawn(n: int, tasks: Any, seed: int = 42, shares: tuple[float, float] = (0.7, 0.1)) -> Any:
    """Splits of shares train and validation, the rest test, drawn within every task."""
    rng = np.random.default_rng(seed)
    out = np.empty(n, dtype="<U10")
    for task in np.unique(tasks):
        rows = rng.permutation(np.flatnonzero(np.asarray(tasks) == task))
        a, b = (round(s * len(rows)) for s in (shares[0], shares[0] + shares[1]))
        out[rows[:a]], out[rows[a:b]], out[rows[b:]] = "train", "validation", "test"
    return out


def questions(ids: list[str], texts: list[str], choices: list[list[str]]) -> pa.Table:
    return pa.table(
        {
            "query_id": pa.array(ids, pa.string()),
            "question": pa.array(texts, pa.string()),
            "choices": pa.array(choices, pa.list_(pa.string())),
        }
    )


def routerdc(data: Path, seed: int) -> tuple[Core, pa.Table]:
    """RouterDC's own train and test questions of its English tasks, soft scores in training.

    Multiple-choice scores are probabilities where right and 0 where wrong; a test
    answer is right where the score is above 0, so those tasks are read as 0 or 1.
    One in ten of its train questions is kept for validation.
    """
    found = pq.read_table(data / "routerdc" / "matrix.parquet").to_pandas()
    found = found[found.split.isin(["train", "test"]) & found.task.isin(ENGLISH)]
    models = [c.removeprefix("score:") for c in found.columns if c.startswith("score:")]
    scores = found[[f"score:{m}" for m in models]].to_numpy(dtype=np.float64, copy=True)
    choice = found.task.isin(["mmlu", "arc_challenge"]).to_numpy()
    scores[choice] = (scores[choice] > 0).astype(float)
    split = found.split.astype(str).to_numpy(dtype="<U10")
    tasks = found.task.astype(str).tolist()
    train = np.flatnonzero(split == "train")
    part = drawn(len(train), np.array(tasks)[train], seed, (0.9, 0.1))
    split[train[part == "validation"]] = "validation"
    ids = found.query_id.astype(str).tolist()
    texts = found.question.astype(str).tolist()
    return core_of(ids, models, scores, tasks, split), questions(ids, texts, [[]] * len(ids))


def bbh(data: Path, seed: int) -> tuple[Core, pa.Table]:
    """BBH of the Open LLM Leaderboard v2: 24 tasks, 19 models, 70/10/20 within tasks."""
    asked = pq.read_table(data / "bbh" / "questions.parquet").to_pandas()
    scores = pq.read_table(data / "open_llm_leaderboard_v2" / "scores.parquet").to_pandas()
    wide = scores[scores.task.isin(asked.task.unique())].pivot_table(
        index=["task", "index"], columns="model", values="score", observed=True
    )
    ids = [f"{task}-{index}" for task, index in zip(asked.task, asked["index"], strict=True)]
    labels = wide.loc[list(zip(asked.task, asked["index"], strict=True))].to_numpy()
    tasks = asked.task.astype(str).tolist()
    split = drawn(len(ids), tasks, seed)
    core = core_of(ids, [str(c) for c in wide.columns], labels, tasks, split)
    return core, questions(ids, asked.question.tolist(), [[]] * len(ids))


def mmlu_pro(data: Path, seed: int) -> tuple[Core, pa.Table]:
    """MMLU-Pro: 12,032 questions, 29 models; the stored letter against the answer of its run."""
    asked = pq.read_table(data / "mmlu_pro" / "queries.parquet").to_pandas()
    given = pq.read_table(
        data / "mmlu_pro" / "responses.parquet",
        columns=["question_id", "model", "pred", "answer_in_run"],
    ).to_pandas()
    given["score"] = (given.pred.astype(str) == given.answer_in_run.astype(str)).astype(float)
    wide = given.pivot_table(index="question_id", columns="model", values="score", observed=True)
    labels = wide.reindex(asked.question_id).to_numpy()
    ids, tasks = [str(i) for i in asked.question_id], asked.category.astype(str).tolist()
    core = core_of(ids, [str(c) for c in wide.columns], labels, tasks, drawn(len(ids), tasks, seed))
    return core, questions(ids, asked.question.tolist(), [list(o) for o in asked.options])


def gsm8k(data: Path, seed: int) -> tuple[Core, pa.Table]:
    """GSM8K by ZeroEval: 1,319 questions, 43 models, the labels of its own rule."""
    asked = pq.read_table(data / "zeroeval_gsm" / "queries.parquet").to_pandas()
    given = pq.read_table(data / "zeroeval_gsm" / "upstream_labels.parquet").to_pandas()
    given["score"] = given.correct.astype(float)
    wide = given.pivot_table(index="query_id", columns="model", values="score", observed=True)
    labels = wide.reindex(asked.query_id).to_numpy()
    ids = asked.query_id.astype(str).tolist()
    tasks = ["gsm8k"] * len(ids)
    core = core_of(ids, [str(c) for c in wide.columns], labels, tasks, drawn(len(ids), tasks, seed))
    return core, questions(ids, asked.question.tolist(), [[]] * len(ids))


MATRICES: dict[str, Callable[[Path, int], tuple[Core, pa.Table]]] = {
    "routerdc": routerdc,
    "bbh": bbh,
    "mmlu_pro": mmlu_pro,
    "gsm8k": gsm8k,
}


def single_rows(data: Path) -> dict[str, dict[str, float]]:
    """Task → model → test accuracy of RouterDC's data, per cent: its Table 1's first rows."""
    found = pq.read_table(data / "routerdc" / "matrix.parquet").to_pandas()
    found = found[found.split == "test"]
    rows: dict[str, dict[str, float]] = {}
    for task, part in found.groupby("task", observed=True):
        scores = part[[c for c in part.columns if c.startswith("score:")]]
        right = (scores > 0) if task in ("mmlu", "cmmlu", "arc_challenge") else scores
        rows[str(task)] = {
            str(name).removeprefix("score:"): 100 * float(value)
            for name, value in right.mean().items()
        }
    return rows


def macro(core: Core, done: Any, bench: Any, out: Path, encoder: str) -> list[tuple[str, float]]:
    """(router, macro accuracy over tasks in per cent) of the winners, best first."""
    from pipelines.evaluate.selection import at_choice, best
    from pipelines.zoo.run import scores

    test = core.take(core.rows(bench.scheme, "test"))
    found = []
    for router, kept in scores(bench, done, out / "cells", encoder).items():
        choice = best(kept.astype(np.float64), ~np.isnan(test.labels), np.zeros(core.n_models))
        hit = at_choice(test.labels, choice)
        each = [float(hit[test.tasks == task].mean()) for task in np.unique(test.tasks)]
        found.append((router, 100 * float(np.mean(each))))
    return sorted(found, key=lambda row: -row[1])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("matrix", choices=sorted(MATRICES))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--encoders", default="tfidf")
    parser.add_argument("--routers", default="all")
    parser.add_argument("--seed", type=int, default=42, help="of the drawn splits")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--runner", choices=("threads", "dask"), default="threads")
    parser.add_argument("--cache", type=Path, default=Path("yard/cache/embeddings"))


def run(given: argparse.Namespace) -> dict[str, Any]:
    from flows.actions import zoo
    from pipelines.zoo.entrants import registered
    from pipelines.zoo.report import overall

    data = Path(os.environ.get("ROUTEYARD_DATA", "data"))
    core, queries = MATRICES[given.matrix](data, given.seed)
    names = given.encoders.split(",")
    matrices = zoo.vectors({"queries": queries}, core, names, scheme="dense", cache=given.cache)
    entrants = registered(None if given.routers == "all" else given.routers.split(","))
    given.out.mkdir(parents=True, exist_ok=True)
    began, used = time.perf_counter(), time.process_time()
    command = f"python -m benchmarks zoo {given.matrix} --encoders {given.encoders} "
    command += f"--routers {given.routers}"
    done, bench = zoo.run(
        core, "dense", matrices, entrants, given.out, title=f"Zoo: {given.matrix}",
        runner=given.runner, workers=given.workers, notes=[f"Made by `{command}`.", ""],
    )  # fmt: skip
    passed, cpu = time.perf_counter() - began, time.process_time() - used
    ranked = sorted(
        {router for router, _ in done.standings}, key=lambda r: -overall(done.standings, r)[0]
    )
    found: dict[str, Any] = {
        "cells": len(done.results),
        "wall_s": round(passed, 1),
        "cpu_s": round(cpu, 1),
        "routers": {r: round(100 * overall(done.standings, r)[0], 2) for r in ranked},
        "references": {k: round(100 * v, 2) for k, v in done.references.items()},
    }
    if given.matrix == "routerdc":
        found["single"] = single_rows(data)
        page = (given.out / "table.md").read_text(encoding="utf-8")
        for encoder in names:
            rows = macro(core, done, bench, given.out, encoder)
            found[f"macro[{encoder}]"] = {router: round(value, 2) for router, value in rows}
            page += f"\nMacro over {', '.join(ENGLISH)}, {encoder}, seed 42 of the winner:\n\n"
            page += "".join(f"- {router}: {value:.2f}\n" for router, value in rows)
        (given.out / "table.md").write_text(page, encoding="utf-8")
    return found
