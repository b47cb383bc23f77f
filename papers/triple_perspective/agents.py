"""Agents that are routed, per question and per step: read `curve.py` first."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.common.arrays import Floats, Ints
from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.evaluate.fit import Fit
from routeyard.pipelines.evaluate.metrics.bootstrap import interval
from routeyard.pipelines.evaluate.results import default_pair
from routeyard.pipelines.evaluate.studies.items import measure_of
from routeyard.pipelines.evaluate.studies.study import SLOW_RESAMPLES, StudyCell, StudyContext
from routeyard.schemas.contracts import RESULTS
from routeyard.schemas.errors import BadInput

# When a small agent should hand over: what can be seen of a trajectory after each of its steps.

_WORD = re.compile(r"\w{3,}")
#: Seen after a step: its number, tokens of prompt and reply (log), share of the question's words
#: in what was found so far, new passages' characters (log), whether the search was a repeat.
FEATURES = 6


def relays(steps: pa.Table, small: str, large: str) -> dict[int, str]:
    """Steps that the small model takes before the large one → member of the pool that does so."""
    found: dict[int, str] = {}
    acted: dict[str, dict[tuple[str, int], list[str]]] = {}
    for row in steps.select(["query_id", "model_id", "sample", "step", "acted_by"]).to_pylist():
        of = acted.setdefault(row["model_id"], {}).setdefault((row["query_id"], row["sample"]), [])
        of.append(row["acted_by"])
    for member, trajectories in sorted(acted.items()):
        over = [actors for actors in trajectories.values() if large in actors]
        firsts = {actors.index(large) for actors in over}
        if member in (small, large) or len(firsts) != 1 or firsts == {0}:
            continue
        if all(set(actors[: actors.index(large)]) == {small} for actors in over):
            found[min(firsts)] = member
    return found


def states(
    steps: pa.Table, small: str, ids: Sequence[str], prompts: Sequence[str]
) -> dict[int, Floats]:
    """Steps taken → (n, FEATURES) of the small model's first samples; NaN where it had ended."""
    of: dict[str, list[Mapping[str, Any]]] = {}
    for row in steps.sort_by([("query_id", "ascending"), ("step", "ascending")]).to_pylist():
        if row["model_id"] == small and row["sample"] == 0:
            of.setdefault(row["query_id"], []).append(row)
    longest = max((len(rows) for rows in of.values()), default=0)
    made = {k: np.full((len(ids), FEATURES), np.nan) for k in range(1, longest)}
    for at, (query, prompt) in enumerate(zip(ids, prompts, strict=True)):
        asked, seen, queries = set(_words(prompt)), set[str](), set[str]()
        for k, row in enumerate(of.get(query, [])[:-1], 1):
            text = " ".join(row["found"])
            seen |= set(_words(text))
            again = bool(queries & set(row["queries"]))
            queries |= set(row["queries"])
            made[k][at] = (
                k,
                math.log1p(row["prompt_tokens"] or 0),
                math.log1p(row["completion_tokens"] or 0),
                len(asked & seen) / max(len(asked), 1),
                math.log1p(len(text)),
                again,
            )
    return made


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def handed(
    made: Mapping[int, Floats], train: Ints, right: Floats, members: Mapping[int, int], small: int
) -> Ints:
    """Which member each question is given to, for a row of thresholds, int64 [thresholds, n].

    A logistic regression on the train questions' states says how likely the small model still is
    to be right; the large one takes over at the first step at which that is below the threshold.

    Args:
        right: (n,) whether the small model's own trajectory was right.
        members: Steps taken → column of the relay that hands over there.
    """
    chances = _chances(made, train, right, members)
    every = np.concatenate([c[~np.isnan(c)] for c in chances.values()] or [np.zeros(0)])
    thresholds = np.unique(np.concatenate([[0.0], np.quantile(every, np.linspace(0, 1, 21)), [1.1]])
                           if len(every) else np.array([0.0]))  # fmt: skip
    n = len(right)
    chosen = np.full((len(thresholds), n), small, dtype=np.int64)
    for row, threshold in enumerate(thresholds):
        open_ = np.ones(n, bool)
        for k in sorted(members):
            with np.errstate(invalid="ignore"):
                hands = open_ & (chances[k] < threshold)
            chosen[row, hands] = members[k]
            open_ &= ~hands
    return chosen


def _chances(
    made: Mapping[int, Floats], train: Ints, right: Floats, members: Mapping[int, int]
) -> dict[int, Floats]:
    """Steps taken → (n,) chance that the small model will be right; NaN where it had ended."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    chances = {k: np.full(len(right), np.nan) for k in members}
    seen = [(k, at) for k in members if k in made for at in train
            if not np.isnan(made[k][at]).any() and not np.isnan(right[at])]  # fmt: skip
    if not seen:
        return chances
    x = np.stack([made[k][at] for k, at in seen])
    y = np.array([right[at] > 0.5 for _, at in seen])
    fitted = None
    if y.any() and not y.all():
        fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)
    for k in chances.keys() & made.keys():
        rows = np.flatnonzero(~np.isnan(made[k]).any(axis=1))
        if len(rows):
            known = y.mean() if fitted is None else fitted.predict_proba(made[k][rows])[:, 1]
            chances[k][rows] = known
    return chances


# Figure 4 of the triple-perspective paper: cost against accuracy of agents that are routed.

#: Routers of whole questions that are drawn where the release can feed them.
ROUTERS = ("probe-dirichlet", "semantic-entropy", "margin", "knn", "ridge", "task-map")
RANDOM, FIXED, LEARNED = "at random", "step: fixed", "step: learned"
ORACLE, STEP_ORACLE = "question: oracle", "step: oracle"
SHARES = (0.25, 0.5, 0.75)
#: Thresholds of a router's scores that are drawn.
POINTS = 41
DEAR = "its cost, of the large one's"

Choices = Mapping[str, Ints]


def _pair(context: StudyContext) -> tuple[str, str]:
    pair = context.pair or default_pair(context.core)
    if pair is None:
        raise BadInput(
            "which model is small and which is large?",
            where=context.release,
            next_step="name two models: --pair small,large",
        )
    return pair


def choices_of(context: StudyContext) -> tuple[Core, Choices]:
    """The test questions, and per way of routing what it chooses, int64 [points, questions]."""
    small, large = _pair(context)
    core, scheme = context.core, context.default_scheme()
    measure = measure_of(context)
    known = np.isfinite(core.decided).all(axis=1) & np.isfinite(core.costs[measure]).all(axis=1)
    known = np.asarray(known, dtype=np.bool_)
    column = {name: k for k, name in enumerate(core.model_ids)}
    low, high = column[small], column[large]
    test = np.array([k for k in core.rows(scheme, "test").tolist() if known[k]], dtype=np.int64)
    train = core.rows(scheme, "train")
    n = len(test)
    found: dict[str, Ints] = {}
    steps = context.tables["steps"]
    members = {k: column[name] for k, name in relays(steps, small, large).items() if name in column}
    for name in context.able(ROUTERS):
        two = core.with_models((small, large))
        learner = partial(context.make(name), context.seed)
        scores = Fit(learner, two.training(scheme)).scores(two.take(test).queries())
        wanted = scores[:, 1] - scores[:, 0]
        # Equal scores go together: which of them comes first would be a matter of their order.
        levels = np.append(np.unique(wanted), np.inf)
        drawn = np.unique(np.linspace(0, len(levels) - 1, POINTS).round().astype(np.int64))
        found[f"question: {name}"] = np.stack(
            [np.where(wanted >= least, high, low) for least in levels[drawn]]
        )
    if members:
        ends = [low, *(members[k] for k in sorted(members)), high]
        found[FIXED] = np.stack([np.full(n, one) for one in ends])
        made = states(steps, small, core.query_ids, core.prompts)
        given_to = handed(made, train, core.decided[:, low], members, low)
        found[LEARNED] = np.vstack([given_to[:, test], np.full((1, n), high)])
    found[RANDOM] = np.stack([np.full(n, low), np.full(n, high)])
    part = core.take(test)
    found[ORACLE] = _oracle(part, [low, high], measure)
    if members:
        found[STEP_ORACLE] = _oracle(part, [low, high, *members.values()], measure)
    return part, found


def _oracle(core: Core, among: Sequence[int], measure: str) -> Ints:
    """The cheapest right member for each question, else the cheapest; one point."""
    cost = core.costs[measure][:, list(among)]
    right = core.decided[:, list(among)] > 0.5
    best = np.where(right.any(axis=1, keepdims=True), np.where(right, cost, np.inf), cost)
    chosen: Ints = np.asarray(among, dtype=np.int64)[best.argmin(axis=1)]
    return chosen[None, :]


def _points(core: Core, chosen: Ints, measure: str, rows: Ints) -> tuple[Floats, Floats]:
    """(mean cost, accuracy) of each point on these questions; costs ascend, accuracy never falls.

    A dearer point that is worse is not used, and between two points one may mix them.
    """
    cost = np.take_along_axis(core.costs[measure][rows], chosen[:, rows].T, axis=1).mean(axis=0)
    right = np.take_along_axis(core.decided[rows], chosen[:, rows].T, axis=1).mean(axis=0)
    order = np.lexsort((right, cost))
    return cost[order], np.maximum.accumulate(right[order])


def cells(context: StudyContext) -> Sequence[StudyCell]:
    core, found = choices_of(context)
    measure, n = measure_of(context), core.n_queries
    small, large = (core.model_ids.index(name) for name in _pair(context))
    generator = np.random.default_rng(context.seed)
    draws = [generator.integers(0, n, n) for _ in range(min(SLOW_RESAMPLES, context.resamples))]
    cells = []
    for name, chosen in found.items():
        oracle = name in (ORACLE, STEP_ORACLE)

        def at(rows: Ints, chosen: Ints = chosen) -> Floats:
            ends = core.costs[measure][rows][:, [small, large]].mean(axis=0)
            cost, right = _points(core, chosen, measure, rows)
            wanted = ends[0] + np.array(SHARES) * (ends[1] - ends[0])
            best = [right.max(), cost[right.argmax()] / ends[1]]
            return np.append(np.interp(wanted, cost, right), best)

        whole = at(np.arange(n))
        spread = np.stack([at(rows) for rows in draws])
        for k, heading in enumerate([*(f"at {s:.0%} of the extra cost" for s in SHARES), "best"]):
            if oracle and heading != "best":
                continue
            low, high = interval(spread[:, k])
            cells.append(StudyCell(name, heading, float(whole[k]), "percent", low, high))
        low, high = interval(spread[:, -1])
        cells.append(StudyCell(name, DEAR, float(whole[-1]), "percent", low, high))
    return cells


def curves(context: StudyContext) -> pa.Table:
    core, found = choices_of(context)
    rows = []
    for name, chosen in found.items():
        cost, right = _points(core, chosen, measure_of(context), np.arange(core.n_queries))
        rows += [
            {"series": name, "x": float(x), "y": float(y)} for x, y in zip(cost, right, strict=True)
        ]
    return pa.Table.from_pylist(rows, schema=RESULTS["study_curves"])
