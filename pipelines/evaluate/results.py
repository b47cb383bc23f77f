"""What an evaluation computes of each router: choices, costs, two-model trade-off, intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.common.arrays import (
    Floats,
    Ints,
    allocate,
    ratio,
    side_by_side,
    single_means,
)
from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.evaluate.certificate import McNemar, holm, mcnemar
from routeyard.pipelines.evaluate.metrics import METRICS, tradeoff
from routeyard.pipelines.evaluate.metrics import selection as plateau
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws, interval, p_value
from routeyard.pipelines.evaluate.metrics.selection import Choice, at_choice, best, query_oracle
from routeyard.pipelines.evaluate.metrics.single import wanted
from routeyard.pipelines.evaluate.metrics.spec import (
    EvaluationData,
    MetricSpec,
    Routed,
    SharedFacts,
    Swept,
)
from routeyard.pipelines.evaluate.settings import Bands
from routeyard.pipelines.evaluate.sweep import (
    MetricRow,
    at_budget,
    column_metric,
    counted,
    curve_rows,
    deferral,
    metric,
    utilities,
)
from routeyard.schemas.errors import BadInput

# One router on its data: every metric with its interval, of a whole pool, over cost, on a pair.


def _none() -> NDArray[Any]:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class RouterResult:
    """Rows of one router, and what comparisons need of it.

    Attributes:
        areas: measure → (value, replicates) of its AUDC; on a pair, of `apgr`, `auroc`.
        budget: rows at the mean cost of the most accurate single model.
        matched: (n,) scores at that cost; without a measure, those at any.
        grids: the first measure → (k,) mean cost and (n, k) choice at every setting of the sweep.
        profile: (m,) share of the questions that each model is asked.
        choice: (n,) model asked without regard to cost.
        wanted: (n,) the same if none were left out for want of a label.
        accuracy: (resamples,) replicates of its accuracy.
    """

    router: str
    metrics: list[MetricRow]
    curves: list[dict[str, Any]]
    areas: Mapping[str, tuple[float, Floats]]
    budget: Sequence[MetricRow] = ()
    matched: Floats = field(default_factory=_none)
    grids: Mapping[str, tuple[Floats, NDArray[np.int16]]] = field(default_factory=dict)
    profile: Floats = field(default_factory=_none)
    choice: Choice = field(default_factory=_none)
    wanted: Choice = field(default_factory=_none)
    accuracy: Floats = field(default_factory=_none)


def routed_of(
    data: EvaluationData, router: str, scores: Floats, shared: SharedFacts | None = None
) -> Routed:
    """A router that gives scores (n_test, m), and the model that it asks at any price."""
    choice = best(scores, data.available(), data.order)
    return Routed(data, router, scores, choice, shared or SharedFacts())


def over_costs(routed: Routed, *, points: int = 100, scaling: str = "min-max") -> RouterResult:
    """All metrics of a router that need costs.

    Args:
        points: settings of each deferral curve.
        scaling: how utility scales costs, a key of `SCALINGS`.
    """
    data = routed.data
    rows: list[MetricRow] = []
    curves: list[dict[str, Any]] = []
    areas: dict[str, tuple[float, Floats]] = {}
    grids: dict[str, tuple[Floats, NDArray[np.int16]]] = {}
    for name in data.prices:
        own, drawn, areas[name], swept, choices = deferral(routed, name, points)
        rows += own + registered(routed, "measure", swept)
        curves += drawn
        if name == data.measure:
            grids[name] = (swept.cost, choices)
        rows += utilities(routed, name, scaling)
    budget, within = _at_budget(routed, points)
    matched = at_choice(data.test.labels, within)
    return RouterResult(routed.router, rows, curves, areas, budget, matched, grids)


def registered(routed: Routed, per: str, view: Routed | Swept) -> list[MetricRow]:
    """Rows of the registry's metrics that are computed one by one, others' packages included."""
    rows = []
    shared = routed.shared
    for name in METRICS.names():
        spec: MetricSpec = METRICS.get(name)
        if spec.per != per or spec.compute is None or not shared.wants(name):
            continue
        result = spec.compute(view)
        if result is not None:
            called = f"{name}[{view.measure}]" if isinstance(view, Swept) else name
            measured = (result.value, result.replicates, result.reason, result.n)
            rows.append(metric(routed.router, called, routed.data.split, *measured))
    return rows


def _at_budget(routed: Routed, points: int) -> tuple[list[MetricRow], Choice]:
    """The row of accuracy at the budget, and the choices there."""
    data, split = routed.data, routed.data.split
    if data.measure is None:
        return [], routed.choice
    name = f"accuracy_at_budget[{data.measure}]"
    within = at_budget(routed, points)
    if within is None:
        why = "the most accurate single model has no answer with a label and a known cost"
        return [metric(routed.router, name, split, None, reason=why)], routed.choice
    matched = at_choice(data.test.labels, within)
    drawn = data.draws.means(matched[:, None])[:, 0]
    return [metric(routed.router, name, split, float(matched.mean()), drawn)], within


def measure(
    data: EvaluationData,
    router: str,
    scores: Floats,
    *,
    points: int = 100,
    scaling: str = "min-max",
    shared: SharedFacts | None = None,
) -> RouterResult:
    """All metrics of a router that gives scores (n_test, m).

    Args:
        points: settings of each deferral curve.
        scaling: how utility scales costs, a key of `SCALINGS`.
        shared: what all routers of the evaluation share.
    """
    routed = routed_of(data, router, scores, shared)
    hit = at_choice(data.test.labels, routed.choice)
    rows, replicates = _at_any_price(routed, hit)
    rows += registered(routed, "router", routed)
    rows = _widened(rows)
    costs = over_costs(routed, points=points, scaling=scaling)
    profile = plateau.selection_profile(routed.choice, data.test.n_models)
    chosen = _selection(routed, profile)
    return replace(
        costs, metrics=[*rows, *costs.metrics, *chosen, *costs.budget], profile=profile,
        choice=routed.choice, wanted=routed.once(wanted), accuracy=replicates,
    )  # fmt: skip


def _widened(rows: list[MetricRow]) -> list[MetricRow]:
    """The rows, with an interval of the accuracy that holds those of its floor and its ceiling:
    a model whose labels are missing or undecided may be wrong there, or right."""
    by_name = {row.metric: row for row in rows}
    own, ends = by_name["accuracy"], [by_name.get(f"accuracy_{e}") for e in ("floor", "ceiling")]
    lows = [row.low for row in (own, *ends) if row is not None and row.low is not None]
    highs = [row.high for row in (own, *ends) if row is not None and row.high is not None]
    if not lows or not highs:
        return rows
    wide = replace(own, low=min(lows), high=max(highs))
    return [wide if row is own else row for row in rows]


def _at_any_price(routed: Routed, hit: Floats) -> tuple[list[MetricRow], Floats]:
    """Accuracy, gap to the oracle and exchange with the best single model.

    Rows that compare with that model are over the questions that it has a label for.
    """
    data, router, choice = routed.data, routed.router, routed.choice
    y, split = data.test.labels, data.split
    top = at_choice(y, query_oracle(y))
    decided = data.test.decided
    single = data.own(data.single)
    met = ~np.isnan(single)
    right = plateau.right(at_choice(decided, choice))
    other = plateau.right(decided[:, data.single])
    hard = plateau.hard_subset(decided, data.best_on_test)
    easy = plateau.solvable(decided) & ~hard
    where = {
        "accuracy": hit,
        "gap_to_oracle": top - hit,
        "gap_to_oracle_hard": np.where(hard, top - hit, np.nan),
        "gap_to_oracle_easy": np.where(easy, top - hit, np.nan),
        "gain_over_best_single": hit - single,
        "disagreement_with_best_single": np.where(met, choice != data.single, np.nan),
        "won_from_best_single": np.where(met, right & ~other, np.nan),
        "lost_to_best_single": np.where(met, other & ~right, np.nan),
        "changed_against_best_single": np.where(met, right != other, np.nan),
    }
    where = {name: column for name, column in where.items() if routed.shared.wants(name)}
    columns = side_by_side(list(where.values()))
    replicates = data.draws.means(columns)
    why = "no such question in the split"
    rows = [
        column_metric(router, name, split, column, replicates[:, k], why)
        for k, (name, column) in enumerate(where.items())
    ]
    if not routed.shared.wants("hard_share_of_gap"):
        return rows, replicates[:, 0]
    gap = plateau.oracle_gap(y, choice, data.best_on_test, decided)
    # (gap on hard questions)/(gap on all solvable ones), in every resample.
    parts = np.stack([np.where(hard, top - hit, 0.0), np.where(hard | easy, top - hit, 0.0)], 1)
    sums = data.draws.sums(parts)
    share = ratio(sums[:, 0], sums[:, 1])
    why, n = "there is no gap to the oracle", int((hard | easy).sum())
    explained = gap.share_explained
    rows.append(metric(router, "hard_share_of_gap", split, explained, share, why, n))
    return rows, replicates[:, 0]


def _shares(routed: Routed, profile: Floats) -> list[MetricRow]:
    """Entropy and collapse of the choices."""
    data, router = routed.data, routed.router
    n, m = data.test.n_queries, data.test.n_models
    chosen = allocate((n, m), fill=0.0)
    chosen[np.arange(n), routed.choice] = 1.0
    shares = data.draws.means(chosen)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(shares > 0, shares * np.log(shares), 0.0)
    entropies = -logs.sum(axis=1) / (np.log(m) if m > 1 else 1.0)
    return [
        metric(
            router, "selection_entropy", data.split, plateau.selection_entropy(profile), entropies
        ),
        metric(router, "top_share", data.split, float(profile.max()), shares.max(axis=1)),
    ]


def _selection(routed: Routed, profile: Floats) -> list[MetricRow]:
    """Entropy, collapse and routing outcomes of the choices."""
    data, router, choice = routed.data, routed.router, routed.choice
    rows = _shares(routed, profile) if routed.shared.wants("top_share") else []
    if data.measure is None:
        return rows
    cost = data.test.costs[data.measure]
    for called, published in (("outcome", False), ("outcome_as_published", True)):
        kinds = plateau.outcomes(data.test.decided, cost, choice, as_published=published)
        held = (kinds[:, None] == np.arange(len(plateau.OUTCOMES))).astype(np.float64)
        drawn = data.draws.means(held)
        rows += [
            metric(router, f"{called}[{name}]", data.split, float(held[:, k].mean()), drawn[:, k])
            for k, name in enumerate(plateau.OUTCOMES)
        ]
    return rows


# Which routers differ, and how surely: paired differences with corrected p-values.

#: A corrected p-value below it is significant.
ALPHA = 0.05


@dataclass(frozen=True)
class Comparison:
    """First minus second; `p_adjusted` is Holm-corrected over all pairs of its metric.

    For `mcnemar[…]` the difference is in the share of questions right, the
    p-value exact, low and high are null, and n10 and n01 count the questions
    only the first and only the second gets right.
    """

    metric: str
    split: str
    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    p: float
    p_adjusted: float
    significant: bool
    n10: int | None = None
    n01: int | None = None


def compare(
    metric: str,
    split: str,
    values: Mapping[str, tuple[float, Floats]],
    *,
    on: Mapping[str, Mapping[str, tuple[float, Floats]]] | None = None,
) -> list[Comparison]:
    """All pairs of routers: name → (value, paired replicates); null values are left out.

    Args:
        on: name of a router that is over a part of the questions → the others over that part.
    """
    names = sorted(name for name, (value, _) in values.items() if not np.isnan(value))
    pairs = list(combinations(names, 2))
    parts = on or {}
    met = [
        (parts.get(b, values).get(a, values[a]), parts.get(a, values).get(b, values[b]))
        for a, b in pairs
    ]
    differences = [first[1] - second[1] for first, second in met]
    gains = [first[0] - second[0] for first, second in met]
    p = [p_value(d) for d in differences]
    out = []
    for k, adjusted in enumerate(holm(p) if pairs else []):
        low, high = interval(differences[k])
        sure = bool(adjusted < ALPHA)
        out.append(Comparison(metric, split, *pairs[k], gains[k], low, high, p[k], adjusted, sure))
    return out


def compare_matched(metric: str, split: str, scores: Mapping[str, Floats]) -> list[Comparison]:
    """Exact McNemar tests between all pairs of routers held to the same budget."""
    pairs = list(combinations(sorted(scores), 2))
    tests = [mcnemar(scores[a], scores[b]) for a, b in pairs]
    differences = [float(np.nanmean(scores[a] - scores[b])) for a, b in pairs]
    return _tested(metric, split, pairs, list(zip(tests, differences, strict=True)))


def _tested(
    metric: str,
    split: str,
    pairs: Sequence[tuple[str, str]],
    tests: Sequence[tuple[McNemar, float]],
) -> list[Comparison]:
    """Comparisons of pairs by their tests and differences, corrected by Holm over all of them."""
    adjusted = holm([test.p for test, _ in tests]) if tests else []
    return [
        Comparison(
            metric, split, a, b, difference, None, None, test.p, corrected,
            bool(corrected < ALPHA), test.first_only, test.second_only,
        )
        for (a, b), (test, difference), corrected in zip(pairs, tests, adjusted, strict=True)
    ]  # fmt: skip


def compare_published(
    metric: str,
    split: str,
    grids: Mapping[str, tuple[Floats, NDArray[np.int16]]],
    correct: Floats,
) -> list[Comparison]:
    """One-sided exact McNemar of every router over every other, at the median of their cost grids.

    CSCR, appendix D.6 and Table 16: c* is the median of both routers' mean
    costs along their sweeps together; each takes the setting whose mean cost is
    nearest to it (the cheaper of two as near). Both directions are tested, and
    Holm corrects over all of them.

    Args:
        grids: router → (k,) mean costs and (n, k) choices of its sweep.
        correct: (n, m) decisions.
    """
    names = [(a, b) for a in sorted(grids) for b in sorted(grids) if a != b]
    results = []
    for a, b in names:
        budget = float(np.median(np.concatenate([grids[a][0], grids[b][0]])))
        right = [
            at_choice(correct, choices[:, int(np.argmin(np.abs(costs - budget)))].astype(np.int64))
            for costs, choices in (grids[a], grids[b])
        ]
        results.append((mcnemar(*right, one_sided=True), float(np.nanmean(right[0] - right[1]))))
    return _tested(metric, split, names, results)


@dataclass(frozen=True)
class Rank:
    """A router's place: the range of places that significant differences leave open."""

    router: str
    value: float
    best_place: int
    worst_place: int


def ranking(
    values: Mapping[str, float], comparisons: Sequence[Comparison], metric: str
) -> list[Rank]:
    """Routers by value; places are fixed only by significant differences.

    `best_place` is one more than the number of routers significantly better,
    `worst_place` the number of routers minus those significantly worse.
    """
    better: dict[str, int] = dict.fromkeys(values, 0)
    worse: dict[str, int] = dict.fromkeys(values, 0)
    for row in comparisons:
        if row.metric == metric and row.significant and {row.first, row.second} <= set(values):
            ahead, behind = (
                (row.first, row.second) if row.difference > 0 else (row.second, row.first)
            )
            better[behind] += 1
            worse[ahead] += 1
    order = sorted(values, key=lambda name: (-values[name], name))
    return [Rank(n, values[n], better[n] + 1, len(values) - worse[n]) for n in order]


#: Resamples behind the band of a trade-off curve; its metrics use all of them.
BAND_RESAMPLES = 1000

#: Call rates at which a band is drawn.
RATES = tradeoff.GRID

#: Failures, and successes, of the small model that an interval of the AUROC needs.
LEAST = 5

#: Cells of one block of resampled polylines: a block of arrays stays in the cache.
BLOCK_CELLS = 1 << 18


@dataclass(frozen=True, eq=False)
class ModelPair:
    """Questions on which both models have a label.

    Attributes:
        rows: (n,) their positions among the questions of the data.
        small, large: (n,) labels.
        correct: (n,) whether the small model is right, 1 or 0.
        names: (small, large) model ids.
    """

    rows: Ints
    small: Floats
    large: Floats
    names: tuple[str, str]
    correct: Floats


def pair_of(test: Core, small: str, large: str) -> ModelPair:
    """Raises BadInput when a model is unknown or the two share no question."""
    columns = [test.labels[:, test.place(name)] for name in (small, large)]
    rows = np.flatnonzero(~np.isnan(columns[0]) & ~np.isnan(columns[1]))
    if not len(rows):
        raise BadInput(
            f"{small!r} and {large!r} have no labelled question in common",
            next_step="choose another pair",
        )
    correct = test.decided[rows, test.model_ids.index(small)]
    return ModelPair(rows, columns[0][rows], columns[1][rows], (small, large), correct)


def wanted_of(scores: Floats, small: int, large: int, by: str) -> Floats:
    """(n,) how much a router of a whole pool wants the large model.

    Args:
        by: `confidence`: the less sure it is of the small model, the more
            (RouterXBench, section 3.3; RouterBench+, appendix I.1: a threshold on
            the small model's predicted quality). `difference`: the large model's
            predicted score minus the small one's.
    """
    if by == "confidence":
        return np.asarray(-scores[:, small])
    if by == "difference":
        return np.asarray(scores[:, large] - scores[:, small])
    raise BadInput(f"binary routing cannot go by {by!r}", next_step="known: confidence, difference")


def oracle_wanted(pair: ModelPair) -> Floats:
    """(n,) what an oracle spends first: what the small model fails on, by what the large gains.

    Its AUROC is 1, and for 0/1 labels no curve is above its own.
    """
    return np.asarray(3 * (1 - pair.correct) + pair.large - pair.small)


def default_pair(core: Core) -> tuple[str, str] | None:
    """The two models of a pool of two, small first: by cost where known, else accuracy."""
    if core.n_models != 2:
        return None
    key = single_means(core.labels)
    for name in ("usd", "params"):
        if name in core.costs:
            price = single_means(core.costs[name])
            key = price if price[0] != price[1] else key
            break
    first, second = core.model_ids if key[0] <= key[1] else reversed(core.model_ids)
    return first, second


def metrics_of(bands: Bands) -> Mapping[str, Callable[[Floats, Floats], Floats]]:
    """Name → function of (rate, performance)."""
    return {
        "lpm": lambda x, y: tradeoff.lpm(x, y, bands),
        "hcr": lambda x, y: tradeoff.hcr(x, y, bands),
        "mpm": lambda x, y: tradeoff.mpm(x, y, bands),
        "cpt[50]": lambda x, y: tradeoff.cpt(x, y, 0.5),
        "cpt[80]": lambda x, y: tradeoff.cpt(x, y, 0.8),
        "apgr": lambda x, y: tradeoff.apgr(x, y),
    }


def trade(
    pair: ModelPair,
    draws: Draws,
    split: str,
    router: str,
    wanted: Floats,
    bands: Bands | None = None,
) -> RouterResult:
    """Trade-off metrics of scores `wanted` (n,): how much the large model is needed.

    Args:
        draws: resamples of the pair's n questions.
    """
    bands = bands or Bands()
    names = metrics_of(bands)
    x, y = tradeoff.polyline(wanted, pair.small, pair.large)
    result: dict[str, list[Floats]] = {name: [] for name in (*names, "auroc")}
    band: list[Floats] = []
    size = max(1, BLOCK_CELLS // max(len(wanted), 1))
    done = 0
    for _, block in draws.blocks():
        for first in range(0, len(block), size):
            counts = block[first : first + size]
            xs, ys = tradeoff.polyline(wanted, pair.small, pair.large, counts)
            for name, function in names.items():
                result[name].append(function(xs, ys))
            result["auroc"].append(tradeoff.auroc(wanted, pair.correct, counts))
            if done < BAND_RESAMPLES:
                band += [np.interp(RATES, a, b) for a, b in zip(xs, ys, strict=True)]
                done += len(counts)
    replicates = {name: np.concatenate(parts) for name, parts in result.items()}
    values = {name: float(function(x, y)) for name, function in names.items()}
    values["auroc"] = float(tradeoff.auroc(wanted, pair.correct))
    why = {name: tradeoff.why_null(name, x, y, bands) for name in names}
    why["auroc"] = ""  # `_auroc` says it
    rows = [
        metric(router, name, split, value, replicates[name], why[name])
        for name, value in values.items()
    ]
    rows[list(values).index("auroc")] = _auroc(router, split, values, replicates, pair.correct)
    line, lines = np.interp(RATES, x, y), np.array(band)
    coded, drawn_coded = tradeoff.as_published(line, bands), tradeoff.as_published(lines, bands)
    rows += [
        metric(router, f"{name}_as_published", split, float(coded[name]), drawn_coded[name])
        for name in coded
    ]
    drawn = curve_rows(router, "tradeoff", None, split, RATES, RATES, line, lines)
    rows = counted(rows, len(wanted))
    areas = {name: (values[name], replicates[name]) for name in ("apgr", "auroc")}
    return RouterResult(router, rows, drawn, areas)


def _auroc(
    router: str, split: str, values: Mapping[str, float], replicates: dict[str, Floats],
    correct: Floats,
) -> MetricRow:  # fmt: skip
    """Row of the AUROC; `reason` says how many failures it ranks, since few of them tell little.

    Below `LEAST` failures or successes there is no interval: resamples that by chance
    rank them alike would call an AUROC of 1 certain.
    """
    wrong = int((correct <= 0).sum())
    few = min(wrong, len(correct) - wrong) < LEAST
    if few:
        replicates["auroc"] = np.full_like(replicates["auroc"], np.nan)
    row = metric(
        router, "auroc", split, values["auroc"], replicates["auroc"],
        "the small model is always right, or always wrong",
    )  # fmt: skip
    says = f"the small model fails on {wrong} of {len(correct)} questions"
    if few:
        says += f"; an interval needs {LEAST} failures and {LEAST} successes"
    return row if row.value is None else replace(row, reason=says)
