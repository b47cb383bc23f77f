"""Studies of the confidence-driven router paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.common.matrix import Core, Queries, core_of
from routeyard.pipelines.evaluate.metrics import tradeoff
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws
from routeyard.pipelines.evaluate.metrics.spec import prepare
from routeyard.pipelines.evaluate.results import ModelPair, default_pair, pair_of
from routeyard.pipelines.evaluate.run import Evaluation, evaluate
from routeyard.pipelines.evaluate.run.fitted import PRINTED, bases, battles_on, first_of, trained
from routeyard.pipelines.evaluate.run.mixing import alike, trained_elsewhere
from routeyard.pipelines.evaluate.studies.items import Columns, cells_of, curve_table
from routeyard.pipelines.evaluate.studies.study import StudyCell, StudyContext
from routeyard.pipelines.evaluate.sweep import MetricRow, metric
from routeyard.pipelines.routers.pairs import Battles
from routeyard.schemas.errors import BadInput

# Answer quality of a routed pair: how often a judge has nothing better than the routed answer.
#
# The confidence-driven router paper (section 3.1.2, Table 2) lets a judge name the best of
# the routers' answers at an operating point, several where they are equally good, and counts
# how often each router is named: Score = 100·S/T. Every routed answer is the small or the large
# model's, so who is named follows from the judge's preference between these two: a
# router is named where its model won or tied. No further call is needed.


def opinions(
    preferences: pa.Table, basis: str, pair: ModelPair, query_ids: Sequence[str]
) -> tuple[Floats, Floats]:
    """(n,) 1 where the judge finds nothing better than the small model's answer, and the large's.

    NaN for questions it has not judged.

    Args:
        basis: `judge:<name>`.
        query_ids: of the pair's n questions.

    Raises:
        BadInput: the judge compared the two on none of them.
    """
    part = preferences.filter(pc.equal(preferences.column("basis"), basis))
    at = {query: row for row, query in enumerate(query_ids)}
    small, large = (np.full(len(query_ids), np.nan) for _ in range(2))
    for row in part.to_pylist():
        place = at.get(row["query_id"])
        if place is None or {row["model_a"], row["model_b"]} != set(pair.names):
            continue
        first = row["model_a"] == pair.names[0]
        tie = bool(row["winner_tie"])
        small[place] = tie or bool(row["winner_model_a" if first else "winner_model_b"])
        large[place] = tie or bool(row["winner_model_b" if first else "winner_model_a"])
    if np.isnan(small).all():
        raise BadInput(
            f"{basis} compared {pair.names[0]!r} and {pair.names[1]!r} on no test question",
            next_step="file its verdicts on the test questions as well (rule `preference`)",
        )
    return small, large


def quality_at(
    pair: ModelPair,
    judged: tuple[Floats, Floats],
    draws: Draws,
    split: str,
    router: str,
    wanted: Floats,
    share: float,
) -> MetricRow:
    """Share of judged questions with the best answer, at CPT(share) calls of the large model.

    The operating point is found on all n questions by their labels; the judge's opinion is
    read at that call rate, on the judged questions, by the same order of scores.

    Args:
        judged: from `opinions`. wanted: (n,) how much the large model is wanted.
    """
    seen = ~np.isnan(judged[0])

    def at(counts: Floats | None) -> Floats:
        some = None if counts is None else counts[..., seen]
        x, y = tradeoff.polyline(wanted, pair.small, pair.large, counts)
        rate = tradeoff.cpt(x, y, share)
        xs, ys = tradeoff.polyline(wanted[seen], judged[0][seen], judged[1][seen], some)
        if counts is None:
            return np.asarray(np.interp(rate, xs, ys) if np.isfinite(rate) else np.nan)
        rows = zip(rate, xs, ys, strict=True)
        return np.array([np.interp(r, a, b) if np.isfinite(r) else np.nan for r, a, b in rows])

    results = [at(block) for _, block in draws.blocks()]
    name = f"answer_quality_at_cpt[{100 * share:g}]"
    never = "the large model is no better than the small one"
    return metric(router, name, split, float(at(None)), np.concatenate(results), never)


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
        own, other = alike({"own": context.core, "beside": core_of(tables)}).values()
        return trained_elsewhere(own, other, scheme, context.scheme_beside(other))

    return context.once("tested", made)


def _battles(context: StudyContext) -> Iterator[tuple[Battles, str]]:
    """The battles of each basis, and what it is called."""
    preferences, scheme = context.tables.get("preferences"), context.default_scheme()
    for basis in bases(preferences):
        yield battles_on(context.core, preferences, scheme, _pair(context), basis)


def _wanted(context: StudyContext) -> dict[str, Callable[[Queries], Floats]]:
    """`basis: SW` → how much the large model is wanted; what teaches nothing is left out."""
    result: dict[str, Callable[[Queries], Floats]] = {}
    for battles, called in _battles(context):
        for name, short in PRINTED.items():
            try:
                made = trained(battles, _pair(context), [name])
            except BadInput:  # all ties: the printed MF and MLP have nothing to learn from
                continue
            result[f"{called}: {short}"] = made[name]
    return result


def _compared(context: StudyContext, wanted: Mapping[str, Any], **routers: Any) -> Evaluation:
    """Pair scorers, and perhaps routers, on the test questions."""
    return evaluate(
        _tested(context), routers, scheme=context.default_scheme(), resamples=context.resamples,
        seed=context.seed, pair=_pair(context), pair_scorers=wanted,
    )  # fmt: skip


def _evaluated(context: StudyContext) -> Evaluation:
    def made() -> Evaluation:
        return _compared(context, _wanted(context), random=context.make("random"))

    return context.once("duels", made)


def rates(context: StudyContext) -> Sequence[StudyCell]:
    done = _evaluated(context)
    rows = dict.fromkeys(r["router"] for r in done.curves.to_pylist() if r["curve"] == "tradeoff")
    return cells_of(done, RATES, list(rows))


def curves(context: StudyContext) -> pa.Table:
    result = curve_table(_evaluated(context), "tradeoff")
    wanted = [name.endswith((": kNN", "random", "oracle")) for name in result["series"].to_pylist()]
    return result.filter(pa.array(wanted, pa.bool_()))


def sizes(context: StudyContext) -> Sequence[StudyCell]:
    cells, router = [], "pair-bt-as-printed"
    for battles, called in _battles(context):
        for share in (0.1, 0.25, 0.5, 1.0):
            n = max(2, round(share * len(battles.outcome)))
            made = trained(first_of(battles, n, context.seed), _pair(context), [router])
            name = f"{called}: {n:,}"
            cells += cells_of(_compared(context, {name: made[router]}), RATES, [name])
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
    result: dict[tuple[str, str], tuple[float, StudyCell]] = {}
    for cell in every:
        system = cell.row.rpartition(": ")[0]
        calls = rates_of.get((cell.row, "CPT(50)"))
        rate = 2.0 if calls is None or calls.value is None else calls.value
        heading = cell.column.rpartition(", ")[2]
        if (system, heading) not in result or rate < result[system, heading][0]:
            row = f"best router of {system}"
            best = StudyCell(row, heading, cell.value, "percent", cell.low, cell.high)
            result[system, heading] = (rate, best)
    return [*every, *(cell for _, cell in result.values())]
