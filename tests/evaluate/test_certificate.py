from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from routeyard.flows.evaluation.evaluate import certify as certify_release
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import Core, from_tables
from routeyard.pipelines.evaluate.certificate import CROSSFIT_SURE as SURE
from routeyard.pipelines.evaluate.certificate import certify, holm, leaks, least_resamples
from routeyard.pipelines.evaluate.metrics.bootstrap import p_value
from routeyard.schemas import DUPLICATES
from tests.support.worded_release import worded_release


def test_planted_structure_is_certified_routable(core: Core) -> None:
    found = certify(core, resamples=300, folds=2)
    assert found.verdict == "routable"
    assert {r.router for r in found.routers if r.gain_low > 0} >= {"knn", "mlp", "mf", "task-map"}
    assert found.figures["gap_task_oracle"].low > 0
    assert found.figures["specialist_stability"].value > 0.9
    json.dumps(found.to_json(), allow_nan=False)


def test_models_that_differ_only_in_level_are_not_called_routable(tables) -> None:
    # The oracle over noisy labels is far above the best model, yet nothing is to be learnt.
    found = certify(
        from_tables(**tables(skill=0.5, other=0.5, seed=3)), resamples=300, routers=("knn", "mf")
    )
    assert found.verdict == "headroom not reached"
    assert found.figures["gap_query_oracle"].value > 0.3
    assert abs(found.figures["specialist_stability"].value) < 0.6


def test_one_model_right_everywhere_is_not_routable(core: Core) -> None:
    y = core.labels.copy()
    y[:, 2] = 1.0
    found = certify(_with(core, labels=y), resamples=500, routers=("knn",))
    assert found.verdict == "not routable"
    assert found.best_single == "model-2"
    assert found.figures["gap_query_oracle"].value == 0


def test_without_embeddings_routers_are_null_with_a_reason(tables) -> None:
    parts = tables(n=120)
    del parts["embeddings"]
    found = certify(from_tables(**parts), resamples=200, routers=("knn",))
    assert found.routers == []
    assert found.routers_reason == "the questions have no embeddings"
    assert found.verdict == "headroom only"


def test_without_costs_the_mix_is_null_with_a_reason(core: Core) -> None:
    found = certify(_with(core, costs={}), resamples=200, routers=())
    for name in ("cost_matched_mix", "gap_mix", "dominated_share"):
        assert found.figures[name].value is None
        assert found.figures[name].reason == "no cost measure is known for every model of the pool"
    assert found.measure is None


def test_sampling_luck_is_taken_out_of_the_oracle(tables) -> None:
    # Every model is a fair coin: an oracle that sees the answers looks much better than
    # one half, one that knows only the models' skill cannot be.
    parts = tables(n=300)
    rng = np.random.default_rng(1)
    samples = (rng.random((300, 4, 8)) < 0.5).astype(float)
    ids = parts["labels"].select(["query_id", "model_id"]).to_pydict()
    verdicts = pa.table(
        {
            "query_id": np.repeat(ids["query_id"], 8),
            "model_id": np.repeat(ids["model_id"], 8),
            "sample": pa.array(np.tile(np.arange(8), 1200), pa.int32()),
            "score": samples.ravel(),
            "scorer": ["numeric"] * 9600,
        }
    )
    parts["labels"] = parts["labels"].set_column(2, "score", pa.array(samples.mean(axis=2).ravel()))
    found = certify(from_tables(**parts, verdicts=verdicts), resamples=500, routers=())
    assert found.figures["query_oracle"].value > 0.65
    assert abs(found.figures["query_oracle_corrected"].value - 0.5) < 0.03
    assert found.verdict == "not routable"


def test_order_of_rows_changes_nothing(tables) -> None:
    parts = tables(n=150)
    turned = {name: table.take(list(range(table.num_rows))[::-1]) for name, table in parts.items()}
    a, b = (
        certify(from_tables(**x), resamples=200, routers=("knn",)).to_json()
        for x in (parts, turned)
    )
    assert json.dumps(a) == json.dumps(b)


def test_clusters_widen_the_interval(tables) -> None:
    # Ten copies of every question carry the information of one.
    parts = tables(n=60)
    core = from_tables(**parts)
    tens = core.take(np.repeat(np.arange(60), 10))
    alone = certify(tens, resamples=500, routers=()).figures["best_single"]
    grouped = certify(tens, resamples=500, routers=(), cluster="duplicates")
    wide = grouped.figures["best_single"]
    assert (wide.high - wide.low) > 2 * (alone.high - alone.low)


def test_nothing_labelled_is_refused(core: Core) -> None:
    with pytest.raises(BadInput, match="no query has a label"):
        certify(_with(core, labels=np.full_like(core.labels, np.nan)))


def _with(core: Core, **changes) -> Core:
    from dataclasses import replace

    return replace(core, **changes)


def test_near_duplicates_nobody_looked_for_are_not_none(tables) -> None:
    parts = tables(n=60)
    ids = parts["queries"].column("query_id").to_pylist()
    scheme = next(iter(from_tables(**parts).splits))
    told = leaks(from_tables(**parts), scheme)
    assert told["near_duplicates"] is None
    looked = leaks(from_tables(**parts, duplicates=DUPLICATES.empty()), scheme)
    assert looked["near_duplicates"] == 0
    split = from_tables(**parts).splits[scheme]
    order = sorted(ids)
    pair = [order[list(split).index(side)] for side in ("test", "train")]
    grouped = DUPLICATES.from_rows(
        {
            "query_id": q, "encoder": "e", "threshold": 0.99, "group_id": "g", "similarity": 1.0,
            "representative": q == pair[0], "label_conflict": False,
        }
        for q in pair
    )  # fmt: skip
    assert leaks(from_tables(**parts, duplicates=grouped), scheme)["near_duplicates"] == 1


@pytest.mark.parametrize("routers", [1, 2, 5, 9])
def test_the_least_number_can_decide_and_one_less_cannot(routers: int) -> None:
    least = least_resamples(routers)

    def best(resamples: int) -> float:
        surely = p_value(np.ones(resamples))
        return min(holm([surely, *[1.0] * (routers - 1)]))

    assert best(least) < SURE
    assert best(least - 1) >= SURE


def test_too_few_are_refused(tmp_path: Path) -> None:
    release = worded_release(tmp_path)
    with pytest.raises(BadInput, match="resamples cannot show") as refused:
        certify_release(release, resamples=20)
    assert "give at least" in str(refused.value.next_step)
