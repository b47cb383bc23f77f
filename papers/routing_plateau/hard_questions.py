"""What routers do on hard questions and on easy ones (sections 5.1 and 5.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from routeyard.papers.routing_plateau.over_encoders import evaluations, routers_of
from routeyard.pipelines.common.arrays import Bools, Floats
from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.evaluate.metrics.selection import hard_subset, solvable
from routeyard.pipelines.evaluate.studies.study import StudyCell, StudyContext

ALL = "all routers"


class Hits(NamedTuple):
    """What routers scored on test questions.

    Attributes:
        of: Router → (n,) score of the chosen answer, mean over encoders.
        hard, can: (n,) hard, and solvable, questions (section 5.1).
        top: (n,) score of the best answer.
    """

    of: dict[str, Floats]
    hard: Bools
    can: Bools
    top: Floats


def hits(context: StudyContext) -> Hits:
    """Scores of the chosen answers, question by question."""
    done = evaluations(context)
    first = next(iter(done.values()))
    test = _test(context.core, context.default_scheme())
    place = {query: k for k, query in enumerate(test.query_ids)}
    each: dict[str, list[Floats]] = {}  # an encoder that could not feed a router is not in its mean
    for one in done.values():
        for router, asked, score in _by_router(one.choices):
            own = np.zeros(test.n_queries)
            own[[place[query] for query in asked]] = score
            each.setdefault(router, []).append(own)
    best = test.model_ids.index(first.facts["best_on_test"])
    decided = test.decided
    top = np.nanmax(np.where(np.isnan(test.labels), -np.inf, test.labels), axis=1)
    routers = {name: np.mean(each[name], axis=0) for name in routers_of(context)}
    return Hits(routers, hard_subset(decided, best), solvable(decided), top)


def _test(core: Core, scheme: str) -> Core:
    return core.take(core.rows(scheme, "test")).labelled()


def _by_router(choices: pa.Table) -> list[tuple[str, list[str], Floats]]:
    names = choices.column("router").to_numpy(zero_copy_only=False)
    asked = choices.column("query_id").to_pylist()
    scores = choices.column("score").to_numpy(zero_copy_only=False).astype(np.float64)
    found = []
    for name in dict.fromkeys(names.tolist()):
        rows = np.flatnonzero(names == name)
        found.append((name, [asked[k] for k in rows], np.nan_to_num(scores[rows])))
    return found


def hard_and_easy(context: StudyContext) -> Sequence[StudyCell]:
    """Share of hard questions, and what the gap to the oracle is there and elsewhere."""
    of, hard, can, top = hits(context)
    easy = can & ~hard
    gap = np.mean([top - one for one in of.values()], axis=0)
    cells = [StudyCell(ALL, "f_hard", float(hard.mean()))]
    if not hard.any() or not easy.any():
        why = "the test questions are all of one kind"
        rest = ("spread", "gap hard", "gap easy", "ratio", "share of gap on hard")
        return [*cells, *(StudyCell(ALL, name, note=why) for name in rest)]
    on_hard = [float(one[hard].mean()) for one in of.values()]
    whole = float(gap[can].sum())
    per_router = [
        StudyCell(name, "gap hard", float((top - one)[hard].mean())) for name, one in of.items()
    ] + [StudyCell(name, "gap easy", float((top - one)[easy].mean())) for name, one in of.items()]
    hard_gap, easy_gap = float(gap[hard].mean()), float(gap[easy].mean())
    return [
        *cells,
        StudyCell(ALL, "spread", max(on_hard) - min(on_hard)),
        StudyCell(ALL, "gap hard", hard_gap),
        StudyCell(ALL, "gap easy", easy_gap),
        StudyCell(ALL, "ratio", hard_gap / easy_gap if easy_gap else None),
        StudyCell(ALL, "share of gap on hard", float(gap[hard].sum()) / whole, "percent"),
        *per_router,
    ]


def _train_bce(context: StudyContext) -> dict[str, float]:
    """Router → cross-entropy on train, mean over encoders; empty where no zoo was run."""
    if context.zoo is None:
        return {}
    found: dict[str, list[float]] = {}
    for by_router in context.once("zoo on train", context.zoo.on_train).values():
        for name, value in by_router.items():
            found.setdefault(name, []).append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}


def knn_against_trained(context: StudyContext) -> Sequence[StudyCell]:
    """BCE on train and accuracy on hard questions, of kNN and relative to it."""
    of, hard, _, _ = hits(context)
    cells: list[StudyCell] = []
    bce = _train_bce(context)
    why = "kNN gives no probabilities here"
    if context.zoo is None:
        why = "needs the winners' scores on train: run through `routeyard reproduce`"
    kept = {name: value for name, value in bce.items() if name in of}
    others = [value - bce["knn"] for name, value in kept.items() if name != "knn" and "knn" in bce]
    cells.append(StudyCell("kNN", "train BCE", bce.get("knn"), note=None if "knn" in bce else why))
    cells.append(StudyCell("kNN", "Δ from", min(others, default=None)))
    cells.append(StudyCell("kNN", "Δ to", max(others, default=None)))
    cells += [StudyCell(name, "train BCE", value) for name, value in kept.items() if name != "knn"]
    if "knn" not in of or not hard.any():
        why = "no kNN, or no hard question"
        return [*cells, *(StudyCell("kNN", n, note=why) for n in ("hard accuracy", "median Δ"))]
    on_hard = {name: float(one[hard].mean()) for name, one in of.items()}
    rest = [value - on_hard["knn"] for name, value in on_hard.items() if name != "knn"]
    return [
        *cells,
        StudyCell("kNN", "hard accuracy", on_hard["knn"]),
        StudyCell("kNN", "median Δ", float(np.median(rest)) if rest else None),
    ]
