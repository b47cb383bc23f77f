"""Routers of the confidence-driven router paper: one basis of preferences at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from routeyard.papers.confidence_router.judged import opinions, quality_at
from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import Core, core_of
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws
from routeyard.pipelines.evaluate.metrics.evaluation_data import prepare
from routeyard.pipelines.evaluate.results import default_pair, pair_of
from routeyard.pipelines.evaluate.run import Evaluation, evaluate
from routeyard.pipelines.evaluate.run.fitted import PRINTED, bases, battles_on, first_of, trained
from routeyard.pipelines.evaluate.run.mixing import alike, trained_elsewhere
from routeyard.pipelines.evaluate.studies.items import Columns, cells_of, curve_table
from routeyard.pipelines.evaluate.studies.study import StudyCell, StudyContext
from routeyard.pipelines.routers.base import Queries

RATES: Columns = {
    "cpt[50]": ("CPT(50)", "percent"),
    "cpt[80]": ("CPT(80)", "percent"),
    "apgr": ("APGR", "number"),
}


def _pair(context: StudyContext) -> tuple[str, str]:
    pair = context.pair or default_pair(_tested(context))
    assert pair is not None  # the need `pair`
    return pair


def _tested(context: StudyContext) -> Core:
    """What routers are tested on: the release beside this one, or this one's own test questions.

    The test questions of the release beside this one come after this one's train questions.
    """
    if not context.tested:
        return context.core
    scheme, tables = context.default_scheme(), next(iter(context.tested.values()))

    def made() -> Core:
        own, beside = alike({"own": context.core, "beside": core_of(tables)}).values()
        return trained_elsewhere(own, beside, scheme, context.scheme_beside(beside))

    return context.once("tested", made)


def _wanted(context: StudyContext) -> dict[str, Callable[[Queries], Floats]]:
    """`basis: SW` → how much the large model is wanted; what teaches nothing is left out."""
    preferences = context.tables.get("preferences")
    found: dict[str, Callable[[Queries], Floats]] = {}
    for basis in bases(preferences):
        battles, called = battles_on(
            context.core, preferences, context.default_scheme(), _pair(context), basis
        )
        for name, short in PRINTED.items():
            try:
                made = trained(battles, _pair(context), [name])
            except BadInput:  # all ties: the printed MF and MLP have nothing to learn from
                continue
            found[f"{called}: {short}"] = made[name]
    return found


def _evaluated(context: StudyContext) -> Evaluation:
    return context.once(
        "duels",
        lambda: evaluate(
            _tested(context),
            {"random": context.make("random")},
            scheme=context.default_scheme(),
            resamples=context.resamples,
            seed=context.seed,
            pair=_pair(context),
            pair_scorers=_wanted(context),
        ),
    )


def rates(context: StudyContext) -> Sequence[StudyCell]:
    done = _evaluated(context)
    rows = dict.fromkeys(r["router"] for r in done.curves.to_pylist() if r["curve"] == "tradeoff")
    return cells_of(done, RATES, list(rows))


def curves(context: StudyContext) -> pa.Table:
    found = curve_table(_evaluated(context), "tradeoff")
    wanted = [name.endswith((": kNN", "random", "oracle")) for name in found["series"].to_pylist()]
    return found.filter(pa.array(wanted, pa.bool_()))


def sizes(context: StudyContext) -> Sequence[StudyCell]:
    cells = []
    preferences = context.tables.get("preferences")
    for basis in bases(preferences):
        battles, called = battles_on(
            context.core, preferences, context.default_scheme(), _pair(context), basis
        )
        whole = len(battles.outcome)
        for share in (0.1, 0.25, 0.5, 1.0):
            n = max(2, round(share * whole))
            name = f"{called}: {n:,}"
            done = evaluate(
                _tested(context), {},
                scheme=context.default_scheme(), resamples=context.resamples, seed=context.seed,
                pair=_pair(context),
                pair_scorers={
                    name: trained(
                        first_of(battles, n, context.seed), _pair(context), ["pair-bt-as-printed"]
                    )["pair-bt-as-printed"]
                },
            )  # fmt: skip
            cells += cells_of(done, RATES, [name])
    return cells


def quality(context: StudyContext) -> Sequence[StudyCell]:
    data = prepare(
        _tested(context), context.default_scheme(), resamples=context.resamples, seed=context.seed
    )
    on = pair_of(data.test, *_pair(context))
    test = data.test.take(on.rows)
    queries = test.queries()
    draws = Draws(len(on.rows), context.resamples, context.seed)
    judge = next(iter(context.tested.values())) if context.tested else context.tables
    preferences = judge["preferences"]
    cells = []
    for basis in (b for b in bases(preferences) if b.startswith("judge:")):
        judged = opinions(preferences, basis, on, test.query_ids)
        for name, scores in _wanted(context).items():
            wanted = scores(queries)
            for share in (0.5, 0.8):
                row = quality_at(on, judged, draws, "test", name, wanted, share)
                heading = f"{basis}, at CPT({100 * share:g})"
                cells.append(
                    StudyCell(
                        name, heading, row.value, "percent", row.low, row.high, note=row.reason
                    )
                )
    return cells


def quality_and_systems(context: StudyContext) -> Sequence[StudyCell]:
    """Answer quality of every router, then of each system's best: least CPT(50) on these data."""
    every = quality(context)
    rates_of = {(c.row, c.column): c for c in rates(context)}
    found: dict[tuple[str, str], tuple[float, StudyCell]] = {}
    for cell in every:
        system = cell.row.rpartition(": ")[0]
        calls = rates_of.get((cell.row, "CPT(50)"))
        rate = 2.0 if calls is None or calls.value is None else calls.value
        heading = cell.column.rpartition(", ")[2]
        if (system, heading) not in found or rate < found[system, heading][0]:
            row = f"best router of {system}"
            best = StudyCell(row, heading, cell.value, "percent", cell.low, cell.high)
            found[system, heading] = (rate, best)
    return [*every, *(cell for _, cell in found.values())]
