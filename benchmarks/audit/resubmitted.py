"""How often `audit --beside` fails an honest second submission, and one whose choices were mended.

Honest routers are made from train questions alone: constant ones, the best model of each task,
neighbours and ridge regressions over TF-IDF, some with a preference for weak models. Every
ordered pair of them is a team's first and second submission. Of each router another second
submission exchanges some wrong choices for right ones of the test questions, alone or with a
twentieth of all choices drawn anew.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import permutations
from typing import Any

import numpy as np

from benchmarks.audit.matrices import matrix
from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.common.encoders import tfidf
from routeyard.pipelines.evaluate.zoo.submissions import changed

#: Matrices on which thresholds were chosen, and others.
CHOSEN = ("zeroeval_gsm", "mmlu_pro", "routellm_mmlu", "mint_bench_texts")
OTHERS = ("routerdc", "evouna_nq", "alpaca_eval", "theoremqa")
#: Questions of a matrix that are kept, and choices that are exchanged.
QUESTIONS, EXCHANGED = 2_000, (20, 40, 80)
Choices = np.ndarray[Any, np.dtype[np.int64]]


def figures(draws: int, seed: int) -> dict[str, Any]:
    """Shares of failed submissions: of honest pairs by matrix, and of mended ones by number."""
    honest: dict[str, list[bool]] = defaultdict(list)
    mended: dict[str, list[bool]] = defaultdict(list)
    for name in (*CHOSEN, *OTHERS):
        labels, tasks, texts = _laid_out(name, seed)
        for draw in range(draws):
            rng = np.random.default_rng([seed, draw])
            test = np.zeros(len(labels), dtype=bool)
            test[rng.permutation(len(labels))[: min(500, len(labels) // 3)]] = True
            routers = _routers(labels, tasks, tfidf(texts, ~test), test, rng)
            about = (tasks[test], labels[~test], tasks[~test])
            for before, now in permutations(routers, 2):
                honest[name].append(changed(labels[test], before, now, *about).fails)
            for before in routers:
                for number in EXCHANGED:
                    for share in (0.0, 0.05):
                        after = _mended(labels[test], before, number, share, rng)
                        if after is not None:
                            told = changed(labels[test], before, after, *about)
                            mended[f"{number}, {share:.0%} drawn anew"].append(told.fails)
    return {
        "honest": {name: {"pairs": len(one), "fail": sum(one)} for name, one in honest.items()},
        "mended_share": {kind: round(float(np.mean(one)), 3) for kind, one in mended.items()},
    }


def _laid_out(name: str, seed: int) -> tuple[Floats, Any, list[str]]:
    """(n, m) scores of models that answered all questions, tasks and texts of these."""
    rows = matrix(name).to_pandas()
    rows["task"] = rows["suite"].fillna("all").astype(str) if "suite" in rows else "all"
    # Arms that answered few questions would leave no question that all answered.
    wide = rows.pivot_table(index="question", columns="arm", values="score", aggfunc="first")
    wide = wide.loc[:, wide.notna().mean() > 0.95].dropna()
    wide = wide.sample(min(QUESTIONS, len(wide)), random_state=seed)
    first = rows.drop_duplicates("question").set_index("question").loc[wide.index]
    return wide.to_numpy(float), first["task"].to_numpy(str), first["prompt"].astype(str).tolist()


def _routers(
    labels: Floats, tasks: Any, vectors: Any, test: Any, rng: np.random.Generator
) -> list[Choices]:
    """(questions,) choices of honest routers."""
    from sklearn.linear_model import Ridge
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.pipeline import make_pipeline

    known, asked = vectors[~test], vectors[test]
    train, models = labels[~test], labels.shape[1]
    mean = train.mean(axis=0)
    by_task = {t: train[tasks[~test] == t].sum(axis=0) + mean for t in set(tasks)}
    scores = [np.stack([by_task[t] for t in tasks[test]])]
    weak = 0.15 * np.argsort(np.argsort(mean)) / models
    kinds = [*map(KNeighborsRegressor, (5, 20, 60)), Ridge(1.0), Ridge(30.0)]
    fits = [make_pipeline(kind).fit(known, train) for kind in kinds]
    scores += [one.predict(asked).reshape(len(asked), models) for one in fits]
    scores.append(scores[2] - weak)
    constant = [np.full(len(asked), k) for k in (int(mean.argmax()), int(mean.argmin()))]
    return [*constant, rng.integers(0, models, len(asked)), *(one.argmax(axis=1) for one in scores)]


def _mended(
    labels: Floats, before: Choices, number: int, share: float, rng: np.random.Generator
) -> Choices | None:
    """The choices with some wrong ones exchanged for right ones; None where too few can be."""
    now = before.copy()
    drawn = rng.random(len(now)) < share
    now[drawn] = rng.integers(0, labels.shape[1], drawn.sum())
    wrong = (labels[np.arange(len(now)), now] < 0.5) & (labels.max(axis=1) >= 0.5)
    rows = np.flatnonzero(wrong)
    if len(rows) < number:
        return None
    for row in rng.permutation(rows)[:number]:
        now[row] = rng.choice(np.flatnonzero(labels[row] >= 0.5))
    return now
