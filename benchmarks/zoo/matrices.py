"""Labels, splits and questions of the recorded matrices that the zoo runs on.

RouterDC, BBH of the Open LLM Leaderboard v2, MMLU-Pro and GSM8K, from ROUTEYARD_DATA.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from routeyard.pipelines.common.matrix import Core

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
    """MMLU-Pro: 12,032 questions, 29 models; the stored letter against the answer of its run.

    Models are described by text footprints of what they answered to validation questions.
    """
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
    found = footprints(data / "mmlu_pro" / "responses.parquet", core)
    core = replace(core, descriptors={"text_footprint": found})
    return core, questions(ids, asked.question.tolist(), [list(o) for o in asked.options])


def footprints(responses: Path, core: Core, probes: int = 192) -> NDArray[np.float32]:
    """(m, 256) text footprints of the core's models on validation questions, seed 0."""
    import pyarrow.compute as pc

    from routeyard.pipelines.common.matrix import descriptors_of
    from routeyard.pipelines.evaluate.signals import TEXT_FOOTPRINT_KIND as KIND
    from routeyard.pipelines.evaluate.signals import text_footprints

    held = np.array(core.query_ids)[core.rows("dense", "validation")]
    chosen = sorted(np.random.default_rng(0).permutation(held)[:probes].tolist())
    columns = ["question_id", "model", "output"]
    asked = pa.array([int(one) for one in chosen], pa.int64())
    rows = pq.read_table(responses, columns=columns)
    rows = rows.filter(pc.is_in(pc.cast(rows.column("question_id"), pa.int64()), asked))
    given = {(row["model"], str(row["question_id"])): row["output"] for row in rows.to_pylist()}
    texts = {name: [given.get((name, one)) for one in chosen] for name in core.model_ids}
    table = text_footprints(texts, chosen)
    return descriptors_of(table, pa.array(core.model_ids, pa.string()))[KIND]


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
