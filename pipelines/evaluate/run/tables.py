"""Tables of an evaluation beside its metrics: profiles, exchanges, choices, facts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from annotated_types import Len
from pydantic import BaseModel, ConfigDict, ValidationError

from routeyard.pipelines.common.arrays import Bools, Floats, counts_of, sums_of
from routeyard.pipelines.common.errors import SourceError, few
from routeyard.pipelines.common.matrix import Core, Queries, priced, unseen_images
from routeyard.pipelines.common.untrusted import bounded, short_text
from routeyard.pipelines.evaluate.fit import Experiment
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws, interval
from routeyard.pipelines.evaluate.metrics.selection import (
    Choice,
    at_choice,
    exchange,
    hard_subset,
    query_oracle,
    selection_profile,
    task_oracle,
)
from routeyard.pipelines.evaluate.metrics.spec import (
    EvaluationData,
    SharedFacts,
    cheapest_and_dearest,
    prepare,
)
from routeyard.pipelines.evaluate.results import (
    ALPHA,
    Comparison,
    ModelPair,
    RouterResult,
    compare,
    compare_matched,
    compare_published,
    oracle_wanted,
    over_costs,
    routed_of,
    trade,
    wanted_of,
)
from routeyard.pipelines.evaluate.run.fitted import cost_references, decision_usd, reference_scores
from routeyard.pipelines.evaluate.settings import Bands, EvaluationSettings
from routeyard.pipelines.evaluate.sweep import MetricRow, joint, mean_rows, mix_curve, table
from routeyard.pipelines.routers.base import traits_of
from routeyard.pipelines.routers.listed import Scale
from routeyard.schemas.contracts import RESULTS
from routeyard.schemas.errors import BadInput
from routeyard.schemas.release import order_undecided, undecided_words

# Between routers, and between two models: comparisons with their tests, trade-offs of a pair.

#: Accuracy over the test questions that are not also in train.
WITHOUT_LEAKS = "accuracy_without_leaks"


def accuracy(data: EvaluationData, result: RouterResult, name: str) -> tuple[float, Floats]:
    """(value, replicates) of `accuracy` or `WITHOUT_LEAKS` of a router's choices."""
    if name == WITHOUT_LEAKS and data.clean is not None:
        return _over(data, result, data.clean)
    return float(at_choice(data.test.labels, result.choice).mean()), result.accuracy


def comparisons(data: EvaluationData, measured: Sequence[RouterResult]) -> list[Comparison]:
    """All of routers on a whole pool."""
    accuracies = _accuracies(data, measured, "accuracy")
    if data.clean is not None:
        accuracies += _accuracies(data, measured, WITHOUT_LEAKS)
    return accuracies + cost_comparisons(data, measured)


def cost_comparisons(data: EvaluationData, measured: Sequence[RouterResult]) -> list[Comparison]:
    """Those of areas, and of scores at one budget; without a measure at any price."""
    results: list[Comparison] = []
    for name in data.prices:
        areas = {item.router: item.areas[name] for item in measured}
        results += compare(f"audc[{name}]", data.split, areas)
    matched = {item.router: item.matched for item in measured}
    budget = f"mcnemar[{data.measure or 'accuracy'}]"
    results += compare_matched(budget, data.split, matched)
    if data.measure is not None:
        name = f"mcnemar_as_published[{data.measure}]"
        grids = {item.router: item.grids[data.measure] for item in measured}
        results += compare_published(name, data.split, grids, data.test.decided)
    return results


def _accuracies(
    data: EvaluationData, measured: Sequence[RouterResult], name: str
) -> list[Comparison]:
    hits = {item.router: accuracy(data, item, name) for item in measured}
    asked = np.ones(data.test.n_queries, dtype=bool)
    if name == WITHOUT_LEAKS and data.clean is not None:
        asked = data.clean
    single = np.where(asked, data.own(data.single), np.nan)
    met = ~np.isnan(single)
    if met.any():
        drawn = data.draws.means(single[:, None])[:, 0]
        hits["best single"] = (float(single[met].mean()), drawn)
    on: dict[str, dict[str, tuple[float, Floats]]] = {}
    if not met[asked].all():
        # Where the best single model has no label it is compared with nobody.
        on["best single"] = {item.router: _over(data, item, met) for item in measured}
    asks = {item.router: item.wanted for item in measured}
    asks["best single"] = np.full(data.test.n_queries, data.single)
    return [_unless_open(data, row, asks, asked) for row in compare(name, data.split, hits, on=on)]


def _unless_open(
    data: EvaluationData, row: Comparison, asks: Mapping[str, Choice], asked: Bools
) -> Comparison:
    """The comparison; not significant where missing or undecided labels leave the order open: the
    difference if those of the better one were wrong and those of the other right."""
    ahead, behind = (row.first, row.second) if row.difference > 0 else (row.second, row.first)
    better, worse = (at_choice(data.test.labels, asks[name]) for name in (ahead, behind))
    if not row.significant or not np.isnan((better + worse)[asked]).any():
        return row
    least = np.nan_to_num(better, nan=0.0) - np.nan_to_num(worse, nan=1.0)
    least = np.where(asks[ahead] == asks[behind], 0.0, least)
    drawn = data.draws.means(np.where(asked, least, np.nan)[:, None])[:, 0]
    return row if interval(drawn)[0] > 0 else replace(row, significant=False)


def _over(data: EvaluationData, result: RouterResult, met: Bools) -> tuple[float, Floats]:
    """Accuracy of a router's choices over some of the questions: value, replicates."""
    hit = np.where(met, at_choice(data.test.labels, result.choice), np.nan)
    return float(hit[met].mean()) if met.any() else np.nan, data.draws.means(hit[:, None])[:, 0]


def traded(
    data: EvaluationData,
    on: ModelPair,
    scores: Mapping[str, Floats],
    pair_routers: Mapping[str, Callable[[Queries], Floats]],
    bands: Bands | None,
    by: str = "confidence",
) -> list[RouterResult]:
    """Every router on the pair, and the oracle; `by` as in `pairs.wanted_of`."""
    small, large = (data.test.model_ids.index(name) for name in on.names)
    groups = None if data.draws.groups is None else data.draws.groups[on.rows]
    draws = Draws(len(on.rows), data.draws.resamples, data.draws.seed, groups)
    wanted = {name: wanted_of(s, small, large, by)[on.rows] for name, s in scores.items()}
    queries = data.test.take(on.rows).queries()
    for name, function in pair_routers.items():
        wanted[name] = np.asarray(function(queries), dtype=np.float64)
    wanted["oracle"] = oracle_wanted(on)
    return [trade(on, draws, data.split, name, values, bands) for name, values in wanted.items()]


def pair_levels(data: EvaluationData, on: ModelPair) -> list[MetricRow]:
    draws = Draws(len(on.rows), data.draws.resamples, data.draws.seed)
    both = ((f"small:{on.names[0]}", on.small), (f"large:{on.names[1]}", on.large))
    return mean_rows(draws, data.split, [(name, "accuracy", values) for name, values in both])


# Cost figures of a pool of which some costs are unknown: those of the models whose cost is known.
#
# Routers choose among these models alone, oracles and single models are those of the sub-pool, and
# what was left out is named with its accuracy: unknown is not free, and one model without a size
# does not take every other's cost away.


@dataclass(frozen=True, eq=False)
class SubPool:
    """Figures in one cost measure, over the models whose cost it knows.

    Attributes:
        measure: the cost measure.
        rows, curves, compared: as of an evaluation, only what needs this measure.
        facts: `models`, `left_out` (model → accuracy on the test questions, null without a
            label) and `metrics` (names of the figures that are of the sub-pool).
    """

    measure: str
    rows: list[MetricRow]
    curves: list[dict[str, Any]]
    compared: list[Comparison]
    facts: dict[str, Any]


def sub_pools(
    core: Core,
    data: EvaluationData,
    scores: Mapping[str, Floats],
    experiment: Experiment,
    how: EvaluationSettings,
) -> list[SubPool]:
    """One sub-pool for each measure that the whole pool has no figures in.

    Args:
        scores: router → (n_test, m) scores on the whole pool. One that needs costs to learn is
            fitted again, on the sub-pool.
    """
    results = []
    for name in {**core.costs, **core.part_costs}:
        if name in data.prices:
            continue
        models = _known(core, data, name)
        if not 2 <= len(models) < core.n_models:
            continue
        sub = priced_in(core, name, models)
        part = prepare(
            sub, how.scheme or "", split=data.split, resamples=data.draws.resamples,
            seed=data.draws.seed, cluster=how.cluster, look_for_leaks=False,
        )  # fmt: skip
        if name in part.prices:
            at = [core.model_ids.index(model) for model in sub.model_ids]
            rows = np.flatnonzero(np.isin(data.test.query_ids, part.test.query_ids))
            own = {
                router: replace(experiment, train=part.train, _fits={}).scores(
                    router, part.test.queries()
                )
                if "costs" in traits_of(experiment.fit_of(router).made).needs
                else scores[router][rows][:, at]
                for router in experiment.routers
            }
            scales = {router: experiment.fit_of(router).scale for router in own}
            stated = {
                router: usd
                for router in own
                if (usd := decision_usd(experiment.fit_of(router).made, part.test.queries()))
                is not None
            }
            results.append(_measured(data, part, own, scales, name, how, stated))
    return results


def priced_in(core: Core, measure: str, models: Sequence[str]) -> Core:
    """The release with only these models, and with this one measure as what they cost."""
    known = {**core.costs, **core.part_costs}[measure]
    sub = replace(core, costs={measure: known}, part_costs={})
    return sub.with_models(tuple(name for name in core.model_ids if name in set(models)))


def _known(core: Core, data: EvaluationData, name: str) -> list[str]:
    """The models whose cost is known of some train and of some test question."""
    every = {**core.costs, **core.part_costs}[name]
    where = {query: k for k, query in enumerate(core.query_ids)}
    has = np.ones(core.n_models, dtype=bool)
    for queries in (data.train.queries.query_ids, data.test.query_ids):
        has &= priced(every[np.array([where[query] for query in queries])])
    return [model for model, item in zip(core.model_ids, has, strict=True) if item]


def _measured(
    data: EvaluationData,
    part: EvaluationData,
    scores: dict[str, Floats],
    scales: Mapping[str, Scale],
    name: str,
    how: EvaluationSettings,
    stated: Mapping[str, Floats],
) -> SubPool:
    largest, frontier = joint(part, scores if how.all else {}, how.points, stated)
    shared = SharedFacts(
        largest=largest, frontier=frontier, scales=scales, decision_usd=stated, all=how.all
    )
    ours, references = (
        [
            over_costs(
                routed_of(part, router, matrix, shared), points=how.points, scaling=how.scaling
            )
            for router, matrix in group.items()
        ]
        for group in (scores, reference_scores(part))
    )
    every = [*ours, *references]
    rows = [row for item in every for row in [*item.metrics, *item.budget]] + cost_references(part)
    curves = [row for item in every for row in item.curves]
    compared = cost_comparisons(part, ours)
    left = [model for model in data.test.model_ids if model not in part.test.model_ids]
    facts = {
        "models": list(part.test.model_ids),
        "left_out": {model: _accuracy(data, model) for model in left},
        "best_single": part.test.model_ids[part.single],
        "metrics": sorted({row.metric for row in rows}),
    }
    return SubPool(name, rows, [*curves, *mix_curve(part, name)], compared, facts)


def _accuracy(data: EvaluationData, model: str) -> float | None:
    labels = data.own(data.test.place(model))
    return None if np.isnan(labels).all() else float(np.nanmean(labels))


def in_words(measure: str, facts: Mapping[str, Any]) -> str:
    """What a reader has to know of a sub-pool's figures."""
    left = facts["left_out"].items()
    shown = ", ".join(
        f"{model} ({'no label' if right is None else f'accuracy {right:.1%}'})"
        for model, right in list(left)[:5]
    )
    more = f" and {len(left) - 5} more" if len(left) > 5 else ""
    return (
        f"figures in {measure} are over the {len(facts['models'])} models whose cost is known: "
        f"routers choose among them; left out: {shown}{more}"
    )


# What an evaluation leaves out, and why: cost measures, questions without a label.


def costs_lacking(core: Core, data: EvaluationData) -> dict[str, dict[str, Any]]:
    """Measure without figures → `reason`, and `known`: model → share of its labelled answers
    whose cost is known. Measures that nobody knows anything of are not named."""
    result: dict[str, dict[str, Any]] = {
        name: {"reason": f"not known of {few(who)}", "known": dict.fromkeys(who, 0.0)}
        for name, who in core.lacking.items()
    }
    for name in core.costs:
        if name in data.prices:
            continue
        both, labelled = core.priced(name)
        share = np.round(both / np.maximum(labelled, 1), 4)
        result[name] = {
            "reason": _why(core, data, name),
            "known": dict(zip(core.model_ids, share.tolist(), strict=True)),
        }
    return result


def _why(core: Core, data: EvaluationData, measure: str) -> str:
    """Which condition of `data.prepare` failed, and how much is known at all."""
    of = core.part_priced(measure)
    for part, cost in (
        ("train", data.train.costs[measure]), ("test", data.test.costs[measure]),
    ):  # fmt: skip
        none = np.isnan(cost).all(axis=0)
        if none.any():
            names = [core.model_ids[k] for k in np.flatnonzero(none)]
            return "; ".join(filter(None, (of, f"of no {part} question for {few(names)}")))
    bare = int((~data.available(measure).any(axis=1)).sum())
    n = data.test.n_queries
    return f"{of}; {bare:,} of {n:,} test questions have no answer with a label and a known cost"


def missing(facts: Mapping[str, Any]) -> list[str]:
    """What an evaluation could not take from all questions, as sentences.

    Args:
        facts: of an `Evaluation`.
    """
    words = []
    n, compared = facts["n_test"], facts["n_compared"]
    if compared < n:
        single = "single model" if facts["order_undecided"]["train"] else "best single model"
        words.append(
            f"{single} {facts['best_single']}: labels on {compared:,} of {n:,} test "
            "questions; what is compared with it is over those"
        )
    lacking = {name: k for name, k in facts["labelled"].items() if k < n}
    if lacking:
        least = sorted(lacking.items(), key=lambda item: (item[1], item[0]))
        words.append(
            f"labels missing of {len(lacking)} models: "
            + ", ".join(
                f"{name} has {k:,}, accuracy {_bounds(facts, name)}" for name, k in least[:3]
            )
            + (", …" if len(least) > 3 else "")
            + f" of {n:,}; each model's own rows are over the questions it has a label for"
        )
    for part, first in (("train", facts["best_single"]), ("test", facts["best_on_test"])):
        if open_with := facts["order_undecided"][part]:
            words.append(f"single models on {part}: {undecided_words(first, open_with)[:-1]}")
    if facts["leaked"]:
        words.append(
            f"{facts['leaked']:,} of {n:,} test questions are also in train, in the same words "
            "or nearly: `accuracy_without_leaks` is over the others, and routers are ranked by it "
            "unless all have a preset of their authors (`text`, `code`)"
        )
    pools = facts["sub_pools"]
    words += [
        f"no figures in {measure}: {fact['reason']}"
        for measure, fact in facts["costs_lacking"].items()
        if measure not in pools
    ]
    return words + [in_words(measure, pool) for measure, pool in pools.items()]


def untold(routers: int, resamples: int) -> list[str]:
    """A sentence where no difference between so many routers, and the best single model, can
    be significant: the least p-value of a bootstrap test is 2/(resamples + 1), times the pairs."""
    pairs = routers * (routers + 1) // 2
    least = math.ceil(2 * pairs / ALPHA)
    if routers < 2 or resamples >= least:
        return []
    return [
        f"{resamples:,} resamples cannot tell any two of {routers} routers apart once p-values are "
        f"corrected for {pairs:,} pairs: places need at least {least:,}"
    ]


def _bounds(facts: Mapping[str, Any], name: str) -> str:
    """What a model's accuracy may be, whatever its missing labels are (Manski 1989)."""
    low, high = facts["bounds"][name]
    return f"{low:.1%} to {high:.1%} whatever the others are"


def profiles(data: EvaluationData, measured: Sequence[RouterResult]) -> pa.Table:
    hard = hard_subset(data.test.decided, data.best_on_test)
    on_hard = {
        item.router: selection_profile(item.choice[hard], data.test.n_models)
        for item in measured
        if hard.any()
    }
    return table(
        (
            {
                "router": item.router,
                "split": data.split,
                "model_id": name,
                "share": float(item.profile[k]),
                "hard_share": float(on_hard[item.router][k]) if hard.any() else None,
            }
            for item in measured
            for k, name in enumerate(data.test.model_ids)
        ),
        "profiles",
    )


def exchanges(data: EvaluationData, measured: Sequence[RouterResult]) -> pa.Table:
    ordered = sorted(measured, key=lambda item: item.router)
    return table(
        (
            {
                "first": a.router,
                "second": b.router,
                "split": data.split,
                **asdict(exchange(data.test.decided, a.choice, b.choice)),
            }
            for a, b in combinations(ordered, 2)
        ),
        "exchanges",
    )


def choices(data: EvaluationData, measured: Sequence[RouterResult]) -> pa.Table:
    asked = pa.array(data.test.query_ids, pa.string())
    models = pa.array(data.test.model_ids, pa.string())
    parts = [
        pa.table(
            {
                "query_id": asked,
                "router": pa.repeat(pa.scalar(item.router, pa.string()), len(asked)),
                "model_id": models.take(pa.array(item.choice)),
                "score": pa.array(at_choice(data.test.labels, item.choice)),
            }
        )
        for item in measured
    ]
    return pa.concat_tables(parts)


def facts(
    core: Core,
    data: EvaluationData,
    scheme: str,
    resamples: int,
    seed: int,
    cluster: str | None,
    pair: tuple[str, str] | None,
    pools: Sequence[SubPool] = (),
) -> dict[str, Any]:
    y = data.test.labels
    labelled = sums_of(lambda part: ~np.isnan(part), y)
    right, n = sums_of(np.nan_to_num, y), max(data.test.n_queries, 1)
    summary = {
        "scheme": scheme,
        "split": data.split,
        "n_train": len(data.train.queries),
        "n_validation": 0 if data.train.validation is None else len(data.train.validation.queries),
        "n_test": data.test.n_queries,
        "n_models": core.n_models,
        "coverage": data.test.coverage,
        "measures": list(data.prices),
        "cost_range": {name: list(cheapest_and_dearest(data, name)[1:]) for name in data.prices},
        "costs_lacking": costs_lacking(core, data),
        "leaked": 0 if data.leaked is None else int(data.leaked.sum()),
        "sub_pools": {pool.measure: pool.facts for pool in pools},
        "best_single": core.model_ids[data.single],
        # On so many test questions a router can be compared with it.
        "n_compared": int((~np.isnan(y[:, data.single])).sum()),
        "labelled": dict(zip(core.model_ids, labelled.tolist(), strict=True)),
        # Accuracy on the test questions if all labels that are missing were 0, or 1.
        "bounds": {
            name: [float(total / n), float((total + n - k) / n)]
            for name, total, k in zip(core.model_ids, right, labelled, strict=True)
        },
        "best_on_test": core.model_ids[data.best_on_test],
        # Models whose order with that model is open for want of labels, and for that alone.
        "order_undecided": {
            part: order_undecided(counts_of(labels, core.model_ids), core.model_ids[first])
            for part, labels, first in (
                ("train", data.train.labels, data.single),
                ("test", y, data.best_on_test),
            )
        },
        "encoder": core.encoder,
        "oracle_accuracy": float(at_choice(y, query_oracle(y)).mean()),
        "task_oracle_accuracy": float(
            at_choice(y, task_oracle(y, data.test.tasks, data.price, data.order)).mean()
        ),
        "resamples": resamples,
        "seed": seed,
        "clustered_by": cluster,
        "pair": None if pair is None else {"small": pair[0], "large": pair[1]},
    }
    unseen = unseen_images(data.test.metadata)
    return {**summary, "missing": [*missing(summary), *filter(None, [unseen])]}


# The files of an evaluation, read back: anybody's, so each value is what its column says.

#: Columns that say something in each row.
_FILLED = frozenset(
    {"router", "metric", "split", "model_id", "share", "group", "change", "first", "second", "x"}
)
#: Bytes of `evaluation.json`; it holds some facts and a ranking.
_MOST = 10_000_000


class WrittenFacts(BaseModel):
    """What a page reads of `facts`."""

    model_config = ConfigDict(strict=True)
    n_test: int
    n_train: int
    n_validation: int
    n_models: int
    resamples: int
    coverage: float
    scheme: str
    best_single: str
    clustered_by: str | None = None
    missing: list[str] | None = None
    bands: Annotated[list[float], Len(4, 4)] | None = None
    costs_lacking: dict[str, list[str] | dict[str, Any]] | None = None
    validation: dict[str, float] | None = None
    encoder: str | None = None
    on_encoder: list[str] = []
    own: list[str] = []
    order_undecided: dict[str, list[str | list[str]]] = {}


class WrittenRank(BaseModel):
    """What a page reads of each entry of `ranking`."""

    model_config = ConfigDict(strict=True)
    router: str
    best_place: int
    worst_place: int


class WrittenEvaluation(BaseModel):
    """What a page reads of `evaluation.json`."""

    facts: WrittenFacts | None = None
    ranking: list[WrittenRank] | None = None


def results_table(path: Path, schema: pa.Schema) -> pa.Table:
    """A table of results: the columns of `schema`, with its types.

    Raises:
        BadInput: it is damaged, lacks a column, holds values of another kind, or rows that
            name nothing.
    """
    result = _typed(path, schema)
    if not result.column_names:
        return schema.empty_table()  # as it was written where there was no row
    lacks = [name for name in schema.names if name not in result.column_names]
    if lacks:
        raise _broken(path, f"it has no column {lacks[0]!r}")
    return result


def _typed(path: Path, schema: pa.Schema) -> pa.Table:
    try:
        result = pq.read_table(bounded(path))
        for field in schema:
            if field.name in result.column_names:
                column = result.column(field.name).cast(field.type)
                result = result.set_column(result.column_names.index(field.name), field, column)
    except (pa.ArrowException, KeyError) as error:
        raise _broken(path, str(error)) from error
    for name in schema.names:
        if name in _FILLED & set(result.column_names) and result.column(name).null_count:
            raise _broken(path, f"a row has no {name}")
    return result


def metrics_table(path: Path) -> pa.Table | None:
    """A table of metrics, None when the file is another table.

    Raises:
        BadInput: as `results_table`.
    """
    result = _typed(path, RESULTS["metrics"])
    return result if result.column_names == RESULTS["metrics"].names else None


def read_evaluation(folder: Path) -> dict[str, Any]:
    """What `evaluation.json` says; nothing where there is no such file.

    Raises:
        BadInput: it cannot be read, is no object, or `facts` and `ranking` are not what
            `evaluate` writes.
    """
    path = folder / "evaluation.json"
    try:
        data = json.loads(short_text(path, _MOST))
        json.dumps(data, ensure_ascii=False).encode()  # half of a surrogate pair is no text
        if not isinstance(data, dict):
            raise ValueError("it is no object")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError, SourceError) as error:
        raise _broken(path, str(error)) from error
    try:
        facts = data.get("facts")
        WrittenEvaluation(facts=None if facts == {} else facts, ranking=data.get("ranking"))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _broken(path, f"{where}: {first['msg']}") from error
    return {key: value for key, value in data.items() if value is not None}


def _broken(path: Path, why: str) -> BadInput:
    return BadInput(
        f"{path.name} is no table of an evaluation: {(why.splitlines() or ['damaged'])[0][:300]}",
        where=str(path),
        next_step="`routeyard evaluate RELEASE --out FOLDER` writes it",
    )


# Results of many evaluations, read from their folders into one table.


def read_leaderboard(results: Iterable[Path]) -> tuple[pa.Table, list[str]]:
    """One row per result and router, best accuracy first; and the releases they are of.

    Args:
        results: `metrics.parquet` files, or folders that hold one.

    Raises:
        BadInput: there is no such file, or it is not an evaluation's table of metrics.
    """
    result, releases = {}, {}
    for path in results:
        file = path / "metrics.parquet" if path.is_dir() else path
        if not file.is_file():
            raise BadInput(
                "there is no metrics.parquet",
                where=str(path),
                next_step="name a folder that `routeyard evaluate … --out FOLDER` wrote",
            )
        table = metrics_table(file)
        if table is None:
            raise BadInput("this is no metrics table of an evaluation", where=str(file))
        name = file.parent.name or str(file)
        result[name] = table
        if release := _release(file.parent):
            releases[name] = release
    return leaderboard(result, releases=releases), sorted(set(releases.values()))


def _release(folder: Path) -> str | None:
    """Release and split scheme of an evaluation; None where the folder does not record them."""
    about = read_evaluation(folder)
    try:
        of = about["release"]
        return f"{of['name']} {of['version']} ({about['facts']['scheme']})"
    except (KeyError, TypeError):
        return None


def leaderboard(
    results: Mapping[str, pa.Table],
    *,
    releases: Mapping[str, str] | None = None,
) -> pa.Table:
    """One row per (result file, router) with the metrics as columns, best accuracy first.

    Where labels of the chosen models are missing, their place is that of `accuracy_floor`, which
    counts them as wrong. `questions` says over how many of the test questions the accuracy is,
    such as `117 of 120`; null in results of versions that did not store it.

    Args:
        results: name of a result → its metrics table.
        releases: name of a result → release and scheme that it is of, where that is known.
    """
    of = releases or {}
    tested = {
        result: table.filter(pc.equal(table.column("split"), "test")).to_pylist()
        for result, table in sorted(results.items())
    }
    names = {row["metric"] for part in tested.values() for row in part}
    names -= {"result", "release", "router", "questions"}  # which say what a row is of
    rows: list[dict[str, object]] = []
    for result, part in tested.items():
        asked = max((row.get("n") or 0 for row in part), default=0)
        for router in sorted({row["router"] for row in part}):
            values = {row["metric"]: row for row in part if row["router"] == router}
            line = {"result": result, "release": of.get(result), "router": router}
            line |= {name: values.get(name, {}).get("value") for name in sorted(names)}
            if "accuracy" in values:
                n = values["accuracy"].get("n")
                line["questions"] = f"{n:,} of {asked:,}" if n is not None else None
                line["accuracy_low"] = values["accuracy"]["low"]
                line["accuracy_high"] = values["accuracy"]["high"]
            rows.append(line)
    rows.sort(key=_place)
    return (
        pa.Table.from_pylist(rows)
        if rows
        else pa.table({"result": [], "release": [], "router": []})
    )


def _place(row: dict[str, object]) -> tuple[float, str, str]:
    floor = row.get("accuracy_floor")
    accuracy = row.get("accuracy") if floor is None else floor
    return (
        -accuracy if isinstance(accuracy, float) else 1.0,
        str(row["result"]),
        str(row["router"]),
    )
