"""Routers asked: scores on the test questions, spread over seeds, time per decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.common.arrays import (
    Floats,
    allocate,
    by_rows,
    distinct,
    levels,
    on_disk_if_large,
    take_rows,
)
from routeyard.pipelines.common.matrix import Core, Queries
from routeyard.pipelines.evaluate.certificate import seed_spread
from routeyard.pipelines.evaluate.experiment import RouterSpec, order, redrawn
from routeyard.pipelines.evaluate.fit import Experiment, Fit, fit
from routeyard.pipelines.evaluate.held_out import averages, held_out_groups, unseen_models
from routeyard.pipelines.evaluate.metrics.selection import (
    alone,
    at_choice,
    best,
    random_mean,
    task_oracle,
)
from routeyard.pipelines.evaluate.metrics.spec import EvaluationData
from routeyard.pipelines.evaluate.results import RouterResult
from routeyard.pipelines.evaluate.settings import EvaluationSettings
from routeyard.pipelines.evaluate.sweep import MetricRow, column_metric, mean_rows, metric
from routeyard.pipelines.routers import PAIR_ROUTERS
from routeyard.pipelines.routers.base import no_chances
from routeyard.pipelines.routers.listed import Scale
from routeyard.pipelines.routers.pairs import Battles, from_labels, from_preferences, of_one_basis
from routeyard.schemas.errors import BadInput

# Routers that copy a choice by position: how much the order of the models moves their result.

#: Orders that are tried.
ORDERS = 20


def order_range(data: EvaluationData, name: str, experiment: Experiment) -> list[MetricRow]:
    """Rows of the lowest and highest accuracy over `ORDERS` orders of the models, one of them
    best first and one worst first, with the first seed; none for a router without `positional`.
    """
    if not getattr(experiment.fit_of(name).made, "positional", False):
        return []
    m = data.test.n_models
    rng = np.random.default_rng(0)
    orders = [data.order, data.order[::-1], *(rng.permutation(m) for _ in range(ORDERS - 2))]
    results = []
    for models in orders:
        fit = Fit(experiment.maker(name), data.train.with_models(models), experiment.store)
        scores: Floats = np.empty((data.test.n_queries, m))
        scores[:, models] = fit.scores(data.test.queries().with_models(models))
        choice = best(scores, data.available(), data.order)
        results.append(float(at_choice(data.test.labels, choice).mean()))
    return [
        metric(name, "accuracy_order_low", data.split, min(results)),
        metric(name, "accuracy_order_high", data.split, max(results)),
    ]


@dataclass(frozen=True, eq=False)
class Fitted:
    """Scores (n, m) by router, of the first seed; rows over seeds; seconds per decision.

    `no_chances`: router whose traits call its scores chances → what keeps them from it.
    `not_as_published`: router → what of its published settings its fit could not honour.
    `scales`: router → what it says that its scores mean.
    `published`: routers with the constants of their paper or its code.
    `on_encoder`: routers that read the vectors of the questions.
    `decision_usd`: router → (n,) USD that its own decisions cost, where it states them.
    `not_read`: router that is a table → its columns that nobody read.
    `validation`: router → accuracy on the validation questions, where it is known.
    """

    scores: dict[str, Floats]
    spread: list[MetricRow]
    seconds: dict[str, float]
    no_chances: dict[str, str]
    not_as_published: dict[str, tuple[str, ...]]
    scales: dict[str, Scale]
    published: set[str] = field(default_factory=set)
    on_encoder: set[str] = field(default_factory=set)
    validation: dict[str, float] = field(default_factory=dict)
    decision_usd: dict[str, Floats] = field(default_factory=dict)
    not_read: dict[str, list[str]] = field(default_factory=dict)

    @property
    def as_published(self) -> bool:
        """Whether all routers are in presets of their authors, who score all test questions."""
        return bool(self.scores) and self.published == set(self.scores)


def fitted(
    data: EvaluationData, experiment: Experiment, clock: Callable[[], float] | None = None
) -> Fitted:
    """Ask every router of an experiment about the test questions.

    Args:
        clock: seconds of a clock that only goes forward; None times nothing.

    Raises:
        BadInput: a router's scores have the wrong shape or are not finite.
    """
    queries = data.test.queries()
    result = Fitted({}, [], {}, {}, {}, {})
    for name in experiment.routers:
        reached = []
        for repeat in range(len(experiment.seeds)):
            fit = experiment.fit_of(name, repeat)
            try:
                scores = fit.scores(queries, clock)
            except BadInput as error:
                # "this router" is one of several here.
                error.where = f"router {name!r}" + (f", {error.where}" if error.where else "")
                raise
            if fit.seconds is not None:
                result.seconds.setdefault(name, fit.seconds / max(len(queries), 1))
            if name not in result.scores:
                result.scores[name] = on_disk_if_large(scores)
                if fit.record.not_as_published:
                    result.not_as_published[name] = fit.record.not_as_published
                # At once, while the fit is there: a stopped run goes on after it.
                if (validated := _on_validation(data, fit)) is not None:
                    result.validation[name] = validated
                result.scales[name] = fit.scale
                if "embeddings" in getattr(getattr(fit.made, "traits", None), "needs", ()):
                    result.on_encoder.add(name)
                if (own := decision_usd(fit.made, queries)) is not None:
                    result.decision_usd[name] = own
                if unread := getattr(fit.made, "unread", None):
                    result.not_read[name] = list(unread)
                if getattr(fit.made, "as_published", False):
                    result.published.add(name)
                beyond = no_chances(scores)
                if beyond is not None and fit.scale == "probability":
                    result.no_chances[name] = beyond
            if len(experiment.seeds) > 1:
                reached.append(_accuracy(data, scores))
        result.spread.extend(order_range(data, name, experiment))
        if reached:
            mean, deviation = seed_spread(reached)
            result.spread.extend(
                [
                    metric(name, "accuracy_seed_mean", data.split, mean),
                    metric(name, "accuracy_seed_sd", data.split, deviation),
                ]
            )
    return result


def decision_usd(router: Any, queries: Queries) -> Floats | None:
    """(n,) USD that a router's own decisions cost; None where it states nothing."""
    stated = getattr(router, "decision_usd", None)
    values: Floats | None = stated(queries) if callable(stated) else None
    return values


def _on_validation(data: EvaluationData, fit: Fit) -> float | None:
    """Accuracy of a fit on the validation questions; None without any, or where it
    cannot be asked about them, as a table of test questions.

    Who names one of several routers by its accuracy on the test questions names the luckiest;
    this is what one is chosen by.
    """
    held = data.train.validation
    if held is None or data.split != "test":
        return None
    held = held.take(np.flatnonzero(~np.isnan(held.labels).all(axis=1)))
    try:
        scores = fit.scores(held.queries)
    except BadInput:
        return None
    choice = best(scores, ~np.isnan(held.labels), data.order)
    return float(at_choice(held.labels, choice).mean()) if len(choice) else None


def _accuracy(data: EvaluationData, scores: Floats) -> float:
    """Accuracy of the highest score, cost disregarded."""
    choice = best(scores, data.available(), data.order)
    return float(at_choice(data.test.labels, choice).mean())


# Error bars over splits: routers fitted and tested again on other draws of train and test.

#: The best single model on train, beside the routers.
SINGLE = "best single"


def over_splits(
    core: Core, scheme: str, experiment: Experiment, how: EvaluationSettings
) -> list[MetricRow]:
    """Mean and standard deviation over the draws of accuracy, and of its gain over the best
    single model, with the first seed. A table of predictions is of one split, so it has none.
    """
    reached: dict[str, list[float]] = {SINGLE: []}
    refused: dict[str, str] = {}
    for item in redrawn(core, scheme, how.splits, how.seed):
        test = item.take(item.rows(scheme, how.split)).labelled()
        known, first = ~np.isnan(test.labels), order(item, scheme)
        single = alone(known, first)[:, first[0]]
        reached[SINGLE].append(float(at_choice(test.labels, single).mean()))
        again = Experiment(item.training(scheme), experiment.routers, experiment.seeds[:1],
                           experiment.store)  # fmt: skip
        for name, make in experiment.routers.items():
            if isinstance(make, RouterSpec) and make.is_table:
                refused[name] = "a table of predictions is of one split"
            if name in refused:
                continue
            try:
                choice = best(again.scores(name, test.queries()), known, first)
            except BadInput as error:
                refused[name] = str(error.args[0])
            else:
                hit = float(at_choice(test.labels, choice).mean())
                reached.setdefault(name, []).append(hit)
    if how.splits and not reached[SINGLE]:
        why = "the split puts whole tasks apart"
        refused = dict.fromkeys((*experiment.routers, SINGLE), why)
    rows = []
    for name in (*experiment.routers, SINGLE) if how.splits else ():
        result = np.array(reached.get(name, []))
        gain = result - np.array(reached[SINGLE][: len(result)])
        for called, values in (("accuracy", result), ("gain_over_best_single", gain)):
            if called != "accuracy" and name == SINGLE:
                continue
            mean, sd = (
                (None, None) if name in refused or not len(values) else seed_spread(values.tolist())
            )
            why = refused.get(name, "one draw has no spread")
            rows += [
                metric(name, f"{called}_split_mean", how.split, mean, reason=why),
                metric(name, f"{called}_split_sd", how.split, sd, reason=why),
            ]
    return rows


# Out of distribution, as rows and metrics of an evaluation.


def ood_rows(
    core: Core,
    scheme: str,
    experiment: Experiment,
    how: EvaluationSettings,
) -> list[dict[str, Any]]:
    """Rows of held-out groups with their averages, then of unseen models."""
    drawn: dict[str, Any] = {"resamples": how.resamples, "seed": how.seed}
    drawn |= {"store": experiment.store}
    first = {name: experiment.maker(name) for name in experiment.routers}
    rows = held_out_groups(core, scheme, first, groups=dict(how.ood_groups) or None, **drawn)
    rows += averages(rows)
    hidden = core.unseen.get(scheme) or next(iter(core.unseen.values()), ())
    rows += unseen_models(core, scheme, hidden, first, **drawn)
    return [asdict(row) for row in rows]


def ood_metrics(rows: Sequence[Mapping[str, Any]]) -> list[MetricRow]:
    """The same rows as metrics of splits `ood:<group>`."""
    out = []
    for row in rows:
        split = f"ood:{row['group']}"
        change = (row["change"], row["low"], row["high"])
        out.append(MetricRow(row["router"], "accuracy_change", split, *change, n=row["n"]))
        out += [
            MetricRow(row["router"], name, split, row[name], n=row["n"])
            for name in ("id_accuracy", "ood_accuracy", "agreement")
        ]
    return out


# What routers are compared with, measured like them: oracles, single models, chance.


def reference_scores(data: EvaluationData) -> dict[str, Floats]:
    """(n, m) scores of the per-query and of the per-task oracle.

    Of models that are equally right about a query the per-query oracle asks the cheapest.
    """
    test = data.test
    chosen = task_oracle(test.labels, test.tasks, data.price, data.order)
    per_task = allocate(test.labels.shape)
    for task in distinct(test.tasks):
        at = np.flatnonzero(test.tasks == task)
        per_task[at] = np.nan_to_num(levels(take_rows(test.labels, at)), nan=-1.0)
    # Levels say what the sweep needs; where labels are missing they may rank a replacement wrongly.
    off = np.flatnonzero(best(per_task, data.available(), data.order) != chosen)
    per_task[off, chosen[off]] = take_rows(per_task, off).max(axis=1) + 1e-9
    oracle = by_rows(lambda y: np.nan_to_num(y, nan=-1.0), test.labels)
    if data.measure is not None:  # equal costs stay equal, so that no order of models decides
        paid = test.costs[data.measure]
        dearest = np.fmax.reduce(paid, axis=None, initial=0.0) or 1.0
        oracle -= by_rows(lambda usd: 1e-9 * np.nan_to_num(usd / dearest, nan=1.0), paid)
    return {"oracle": oracle, "task oracle": per_task}


def plain_references(data: EvaluationData) -> list[MetricRow]:
    """Accuracy and cost of every single model, of the best of them, and of uniform chance.

    Those of a model are over the questions that it has a label for, and for its cost a known
    cost; `n` says how many.
    """
    y, split, ids = data.test.labels, data.split, data.test.model_ids
    columns = {f"single:{name}": y[:, k] for k, name in enumerate(ids)}
    columns["best single"] = y[:, data.single]
    columns["uniform random"] = random_mean(y)
    named = [(name, "accuracy", column) for name, column in columns.items()]
    rows = mean_rows(data.draws, split, named, "no label in the split")
    if data.leaked is not None and data.leaked.any():
        column = np.where(data.leaked, np.nan, columns["best single"])
        one, why = ("best single", "accuracy_without_leaks", column), "every test question with"
        rows += mean_rows(data.draws, split, [one], f"{why} a label is in train")
    return rows + cost_references(data)


def cost_references(data: EvaluationData) -> list[MetricRow]:
    """Mean cost of every single model and of the best of them, over the answers that have a
    label and a known cost."""
    rows = []
    called = {f"single:{model}": k for k, model in enumerate(data.test.model_ids)}
    called["best single"] = data.single
    why = "no answer in the split has a label and a known cost"
    for name in data.prices:
        cost = data.own_costs(name)
        paid = data.draws.means(cost)
        rows += [
            column_metric(of, f"mean_cost[{name}]", data.split, cost[:, k], paid[:, k], why)
            for of, k in called.items()
        ]
    return rows


def references_agreement(data: EvaluationData, measured: Sequence[RouterResult]) -> list[MetricRow]:
    """Share of questions on which a router chooses the best generalist; 1 is collapse onto it.

    Over the questions that it has a label for: elsewhere it cannot be chosen.
    """
    rows, called = [], "agreement_with_generalist"
    why = "the best single model has no label in the"
    met, tasks = ~np.isnan(data.own(data.single)), data.test.tasks
    # Within every task too (RouterBench+, Table 4), where there are several.
    names = distinct(tasks).tolist()
    for item in measured:
        same = np.where(met, item.choice == data.single, np.nan)
        within = [
            (item.router, f"{called}[{name}]", np.where(tasks == name, same, np.nan))
            for name in (names if len(names) > 1 else [])
        ]
        rows += mean_rows(data.draws, data.split, [(item.router, called, same)], f"{why} split")
        rows += mean_rows(data.draws, data.split, within, f"{why} task")
    return rows


# Pair routers trained on a release's preferences, one basis at a time, and asked about its test.
#
# The confidence-driven router paper trains the same routers on three opinions of who
# answered better: semantic entropy, correctness and a judge. Battles of two bases are never
# mixed.

#: The four of the confidence-driven router paper as printed, and how its tables call them.
PRINTED: Mapping[str, str] = {
    "pair-bt-as-printed": "SW",
    "pair-mf-as-printed": "MF",
    "pair-mlp-as-printed": "MLP",
    "pair-knn-as-printed": "kNN",
}

#: Battles made from labels, where no preference was recorded: the basis of TO-Router.
LABELS = "labels"


def bases(preferences: pa.Table | None) -> list[str]:
    """What the records were decided on, in order; `labels` where none was on correctness."""
    known = set() if preferences is None else set(preferences.column("basis").to_pylist())
    return [*sorted(known), *([] if "correctness" in known else [LABELS])]


def battles_on(
    core: Core,
    preferences: pa.Table | None,
    scheme: str,
    pair: tuple[str, str],
    basis: str | None = None,
) -> tuple[Battles, str]:
    """(battles of the train and validation questions, what decided them).

    Battles of test questions are never used.

    Raises:
        BadInput: there are no embeddings, or the basis is absent, or several are there
            and none is named.
    """
    if core.embeddings is None:
        raise BadInput(
            "pair routers need embeddings of the questions, and the release has none",
            next_step="pass --embed (from Python: embed=True) or --embeddings FILE, or release "
            "with `include_embeddings: true`",
        )
    if basis == LABELS or preferences is None or not preferences.num_rows:
        if basis not in (None, LABELS):
            raise BadInput(
                f"the release has no preferences, so none on the basis {basis!r}",
                next_step="leave --basis out to train on the labels",
            )
        return from_labels(core.training(scheme), *pair), LABELS
    ids, split = np.array(core.query_ids), core.splits[scheme]
    vectors = dict(zip(core.query_ids, core.embeddings, strict=True))
    train = set(ids[split == "train"].tolist())
    held = frozenset(ids[split == "validation"].tolist())
    records = of_one_basis(preferences, basis)
    called = "+".join(sorted(set(records.column("basis").to_pylist())))
    asked = set(records.column("query_id").to_pylist())
    left = frozenset(asked - train - held)
    return from_preferences(records, vectors, validation=held, leave_out=left), called


def duels_agreement(core: Core, scheme: str, preferences: pa.Table) -> tuple[int, int]:
    """(agreeing, total): of the train records with a winner of which one model alone is right,
    those that it won, and all of them."""
    known = {name: k for k, name in enumerate(core.query_ids)}
    models = {name: k for k, name in enumerate(core.model_ids)}
    agree = total = 0
    columns = ["query_id", "model_a", "model_b", "winner_model_a", "winner_tie"]
    for row in preferences.select(columns).to_pylist():
        at = known.get(row["query_id"])
        first, second = models.get(row["model_a"]), models.get(row["model_b"])
        if at is None or first is None or second is None or row["winner_tie"]:
            continue
        if core.splits[scheme][at] == "test":
            continue
        a, b = core.decided[at, first], core.decided[at, second]
        if a + b == 1:  # NaN where a label is unknown
            total += 1
            agree += int((a == 1) == row["winner_model_a"])
    return agree, total


def misled(agree: int, number: int) -> bool:
    """Whether winners are right less often than a coin would have them (binomial, 5 %).

    >>> misled(0, 5), misled(1, 5), misled(40, 100)
    (True, False, True)
    """
    from scipy.stats import binom

    return bool(number and binom.cdf(agree, number, 0.5) < 0.05)


def trained(
    battles: Battles, pair: tuple[str, str], names: Sequence[str]
) -> dict[str, Callable[[Queries], Floats]]:
    """Name → how much the large model is wanted, of pair routers fitted on the battles."""
    return {name: fit(PAIR_ROUTERS.get(name)(), battles, *pair).scores for name in names}


def first_of(battles: Battles, n: int, seed: int = 0) -> Battles:
    """n of the battles drawn once by a seed, so that a larger draw contains a smaller one."""
    rows = np.sort(np.random.default_rng(seed).permutation(len(battles.outcome))[:n])
    return battles.take(rows)
