"""Figure 4 of the triple-perspective paper: cost against accuracy of agents that are routed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from routeyard.papers.triple_perspective.agents.handing_over import handed, relays, states
from routeyard.pipelines.arrays import Floats, Ints
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.evaluate.pairs import default_pair
from routeyard.pipelines.experiment.fit import Fit
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.metrics.bootstrap import interval
from routeyard.pipelines.studies.context import SLOW_RESAMPLES, StudyContext
from routeyard.pipelines.studies.router_table import measure_of
from routeyard.pipelines.studies.study import StudyCell
from routeyard.schemas.tables import RESULTS

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
