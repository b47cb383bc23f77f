"""Whole evaluations on planted releases, and each metric against a plain loop."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.evaluate.metrics.areas import SCALINGS
from routeyard.pipelines.evaluate.metrics.spec import prepare
from routeyard.pipelines.evaluate.results import measure
from routeyard.pipelines.evaluate.run import evaluate
from routeyard.pipelines.routers import ROUTERS
from routeyard.pipelines.routers.base import Traits
from tests.evaluate.cores import core_of


def makers(*names: str):
    return {name: partial(_make, name) for name in names}


def _make(name: str, seed: int):
    return ROUTERS.get(name)()


def values(done, router: str, split: str = "test") -> dict[str, float | None]:
    return {
        row["metric"]: row["value"]
        for row in done.metrics.to_pylist()
        if row["router"] == router and row["split"] == split
    }


@pytest.fixture(scope="module")
def done(core: Core):
    return evaluate(
        core,
        makers("best-generalist", "knn", "mf", "mlp", "random"),
        all=True,
        resamples=1000,
        pair=("model-0", "model-3"),
    )


def test_learners_beat_the_best_single_model_on_planted_structure(done) -> None:
    gains = {
        row["router"]: row
        for row in done.metrics.to_pylist()
        if row["metric"] == "gain_over_best_single"
    }
    for name in ("knn", "mlp", "mf"):
        assert gains[name]["low"] > 0
    assert gains["best-generalist"]["value"] == 0


def test_exchanged_wins_add_up(done) -> None:
    accuracy = {row["router"]: row["value"] for row in done.ranking}
    for row in done.exchanges.to_pylist():
        assert row["signed"] == pytest.approx(accuracy[row["first"]] - accuracy[row["second"]])
        assert row["unsigned"] <= row["disagreement"] + 1e-12


def test_ranking_leaves_ties_open(done) -> None:
    places = {row["router"]: (row["best_place"], row["worst_place"]) for row in done.ranking}
    # The learners agree on this release: no order among them is claimed.
    assert places["knn"] == places["mf"] == places["mlp"] == (1, 3)
    assert places["random"][0] >= 4


def test_perfect_scores_reach_the_oracle(core: Core) -> None:
    class Knows:
        name = "knows"

        def fit(self, train):
            return self

        def scores(self, queries):
            return core.labels[[core.query_ids.index(q) for q in queries.query_ids]]

    found = evaluate(core, {"knows": lambda seed: Knows()}, all=True, resamples=200)
    mine, oracle = values(found, "knows"), values(found, "oracle")
    for name in ("accuracy", "audc[usd]", "qnc[usd]", "utility[usd,0.5]"):
        assert mine[name] == pytest.approx(oracle[name], abs=1e-12)
    assert mine["gap_to_oracle"] == 0
    assert mine["hard_share_of_gap"] is None


def test_the_oracle_asks_the_cheapest_of_those_that_are_right() -> None:
    rng = np.random.default_rng(0)
    labels, usd = np.ones((60, 3)), rng.random((60, 3))
    labels[rng.random((60, 3)) < 0.3] = 0.0
    usd[rng.random((60, 3)) < 0.1] = np.nan
    splits = np.array(["train"] * 20 + ["test"] * 40)
    core = core_of(labels, ["t"] * 60, costs={"usd": usd}, splits={"dense": splits})
    found = values(evaluate(core, makers("random"), resamples=50), "oracle")
    cheapest = np.where(labels == labels.max(axis=1, keepdims=True), usd, np.nan)[20:]
    known = ~np.isnan(cheapest).all(axis=1)
    assert found["mean_cost[usd]"] == pytest.approx(np.nanmin(cheapest[known], axis=1).mean())


def test_every_null_has_a_reason_and_every_value_its_interval(done) -> None:
    for row in done.metrics.to_pylist():
        if row["metric"] == "auroc":  # says beside its value how many failures it ranks
            assert row["reason"], row
        else:
            assert (row["value"] is None) == (row["reason"] is not None), row
        if row["value"] is not None:
            name = row["metric"].split("[")[0]
            far = name in ("top_share", "hcr", "ece", "pareto_dist")  # resampling moves these up
            assert far or row["low"] <= row["value"] + 1e-9, row


def test_intervals_are_those_of_resampling_the_questions(core: Core) -> None:
    # The whole chain on drawn questions, one resample at a time, must give the replicates.
    data = prepare(core, "dense", resamples=5, seed=3)
    scores = np.random.default_rng(6).random((data.test.n_queries, core.n_models))
    together = measure(data, "x", scores, points=8).areas["usd"][1]
    n = data.test.n_queries
    drawn = np.random.Generator(np.random.PCG64(3)).integers(0, n, size=(5, n))
    for k, rows in enumerate(drawn):
        one = replace(
            data, test=data.test.take(rows), draws=prepare(core, "dense", resamples=1).draws
        )
        value = measure(one, "x", scores[rows], points=8).curves
        line = [row for row in value if row["curve"] == "deferral" and row["measure"] == "usd"]
        # The cost range stays that of the whole test, whatever was drawn.
        from routeyard.pipelines.evaluate.metrics.areas import audc
        from routeyard.pipelines.evaluate.metrics.spec import cheapest_and_dearest

        cheapest, low, high = cheapest_and_dearest(data, "usd")
        area = audc(
            np.array([row["x"] for row in line]),
            np.array([row["y"] for row in line]),
            low,
            high,
            one.test.labels[:, cheapest].mean(),
        )
        assert together[k] == pytest.approx(float(area), abs=1e-9)


class Always:
    """A router that knows one model, and after it only who was best in training."""

    def __init__(self, model: int):
        self.model = model

    def fit(self, train) -> None:
        rows = [row for row in train.labels if not np.isnan(row).all()]
        self.level = np.mean([np.where(np.isnan(r), np.nanmean(r), r) for r in rows], axis=0)

    def scores(self, queries):
        own = np.tile(self.level, (len(queries), 1))
        own[:, self.model] = 2.0
        return own


def test_missing_labels_are_neither_wrong_nor_chosen(core: Core) -> None:
    y = core.labels.copy()
    rng = np.random.default_rng(0)
    y[rng.random(y.shape) < 0.2] = np.nan
    y[:5] = np.nan
    found = evaluate(replace(core, labels=y), makers("knn", "random"), all=True, resamples=100)
    assert found.choices.column("score").null_count == 0
    assert not np.isnan(found.choices.column("score").to_numpy()).any()
    # A router that always chooses a model is that model wherever it has a label.
    always = {"model-1": lambda seed: Always(1)}
    as_router = evaluate(replace(core, labels=y), always, all=True, resamples=100)
    rows = [r for r in as_router.choices.to_pylist() if r["router"] == "model-1"]
    own = [r["score"] for r in rows if r["model_id"] == "model-1"]
    assert 0 < len(own) == found.facts["labelled"]["model-1"] < len(rows)
    assert values(found, "single:model-1")["accuracy"] == pytest.approx(np.mean(own))


def test_two_models_are_a_pair_of_their_own_accord(core: Core) -> None:
    duel = core.with_models(("model-0", "model-3"))
    found = evaluate(duel, makers("knn", "random"), all=True, resamples=50)
    assert found.facts["pair"] == {"small": "model-0", "large": "model-3"}
    assert values(found, "knn")["auroc"] > 0.65
    apart = evaluate(duel, makers("knn"), all=True, resamples=50, binary_by="difference")
    assert values(apart, "knn")["auroc"] > 0.7
    # The default goes by what is predicted of the small model alone.
    assert values(found, "knn")["auroc"] != values(apart, "knn")["auroc"]
    # An oracle that ranked by the difference called both-wrong and both-right questions alike.
    assert values(found, "oracle")["auroc"] == 1.0
    assert 0.3 < values(found, "random")["auroc"] < 0.7


def test_clusters_and_seeds(core: Core) -> None:
    found = evaluate(core, makers("random"), all=True, resamples=200, cluster="task", seeds=3)
    row = values(found, "random")
    assert row["accuracy_seed_sd"] == 0  # the maker ignores the seed, so nothing spreads
    with pytest.raises(BadInput, match="cannot cluster by 'colour'"):
        evaluate(core, makers("random"), all=True, resamples=100, cluster="colour")


def test_out_of_distribution_groups_hurt_planted_learners(core: Core) -> None:
    found = evaluate(core, makers("best-generalist", "knn"), all=True, resamples=100, ood=True)
    rows = {(r["router"], r["group"]): r for r in found.ood.to_pylist()}
    # The held-out domain holds tasks whose specialist was never seen winning.
    assert rows["knn", "a"]["high"] < 0
    assert rows["knn", "average"]["change"] < rows["best-generalist", "average"]["change"]
    assert rows["best-generalist", "a"]["agreement"] == 1.0
    hidden = replace(core, unseen={"dense": ("model-0",)})
    unseen = evaluate(hidden, makers("knn"), all=True, resamples=100, ood=True).ood.to_pylist()
    row = next(r for r in unseen if r["group"] == "unseen models")
    assert row["high"] < 0


def test_scores_of_the_wrong_shape_are_refused(core: Core) -> None:
    class Wrong:
        name = "wrong"

        def fit(self, train):
            return self

        def scores(self, queries):
            return np.zeros((len(queries), 1))

    with pytest.raises(BadInput, match="have shape"):
        evaluate(core, {"wrong": lambda seed: Wrong()}, all=True, resamples=100)
    with pytest.raises(BadInput, match="name of a reference"):
        evaluate(core, {"oracle": lambda seed: Wrong()}, all=True, resamples=100)


def test_scores_that_are_no_chances_are_said_to_be_none(core: Core) -> None:
    # Traits call scores chances unless they say otherwise, and nobody looked.
    class Points:
        name = "points"

        def fit(self, train):
            self.points = 40 * train.labels.mean(axis=0)

        def scores(self, queries):
            return np.tile(self.points, (len(queries), 1))

    class Ordered(Points):
        traits = Traits(scale="strength")

    class Places(Ordered):
        def fit(self, train):
            self.points = 1 / (1 + np.argsort(np.argsort(-train.labels.mean(axis=0))))

    made = {"points": lambda seed: Points(), "ordered": lambda seed: Ordered()}
    made["places"] = lambda seed: Places()
    done = evaluate(core, made, all=True, resamples=100)
    assert list(done.facts["no_chances"]) == ["points"]
    assert done.facts["no_chances"]["points"].startswith("reach from ")
    found = {(r["router"], r["metric"]): r for r in done.metrics.to_pylist()}
    for name in ("points", "ordered", "places"):  # which are not weighed against cost
        assert found[name, "utility[usd,0]"]["value"] is not None
        assert found[name, "utility[usd,0.2]"]["value"] is None
        assert "no probabilities" in found[name, "utility[usd,0.2]"]["reason"]
    del made["points"]
    assert "no_chances" not in evaluate(core, made, all=True, resamples=100).facts


def test_scalings_are_fixed_by_the_train_costs() -> None:
    train = np.array([[1.0, 3.0], [2.0, 5.0]])
    assert SCALINGS["min-max"](train)(np.array([1.0, 5.0, 9.0])).tolist() == [0.0, 1.0, 2.0]
    assert SCALINGS["mean"](train)(np.array([1.5, 4.0])).tolist() == [0.0, 1.0]
    assert SCALINGS["none"](train)(np.array([7.0])).tolist() == [7.0]


def test_facts_and_ranking_are_json(done) -> None:
    json.dumps([dict(done.facts), list(done.ranking)], allow_nan=False)


def test_the_default_leaves_out_figures_that_only_all_computes_and_changes_no_other(
    core: Core,
) -> None:
    from routeyard.pipelines.evaluate.metrics import METRICS

    names = makers("knn", "random")
    usual, whole = (evaluate(core, names, resamples=100, all=rest) for rest in (False, True))
    few, every = (
        {(row["router"], row["metric"], row["split"]): row for row in done.metrics.to_pylist()}
        for done in (usual, whole)
    )
    assert few.keys() < every.keys()
    gone = {metric.partition("[")[0] for _, metric, _ in every.keys() - few.keys()}
    named = {metric.partition("[")[0] for _, metric, _ in every}
    assert gone == {name for name in named if not METRICS.get(name).default}
    for key, row in few.items():
        for end in ("value", "low", "high"):
            assert row[end] == pytest.approx(every[key][end], abs=1e-12), (key, end)
    assert usual.curves == whole.curves
    assert usual.comparisons == whole.comparisons
    assert usual.choices == whole.choices


def test_a_study_that_names_a_figure_of_all_gets_it(core: Core) -> None:
    from types import SimpleNamespace

    from routeyard.pipelines.evaluate.studies.items import router_cells

    asked: list[bool] = []

    def evaluation(routers, *, ood, all):
        asked.append(all)
        return evaluate(core, makers(*routers), resamples=20, all=all)

    context = SimpleNamespace(evaluation=evaluation, routers=(), core=core)
    for name in ("accuracy", "rci"):
        (cell,) = router_cells(context, {name: ("x", "percent")}, routers=["random"], references=())
        assert cell.value is not None
    assert asked == [False, True]
