"""One model without a known cost takes no other's cost figures away, and is never free."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from routeyard.flows.evaluation.evaluate import makers
from routeyard.pipelines.common.matrix import Core, from_tables
from routeyard.pipelines.evaluate.run import evaluate
from routeyard.pipelines.evaluate.run.tables import priced_in
from routeyard.pipelines.routers import ROUTERS

NAMES = ("a-7b", "b-13b", "microsoft/phi-2", "c-70b")
#: As an import of labels alone has it: sizes where names state them, no responses.
SIZES = (7.0, 13.0, None, 70.0)


@pytest.fixture
def sized(tables) -> Core:
    given = tables(n=500, m=4)
    labels = given["labels"]
    new = pa.array([NAMES[int(name[-1])] for name in labels.column("model_id").to_pylist()])
    given["labels"] = labels.set_column(1, "model_id", new)
    given["models"] = pa.table({"model_id": NAMES, "params_b": pa.array(SIZES, pa.float64())})
    del given["responses"]
    core = from_tables(**given)
    kinds = {"logit_footprint": np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)}
    return replace(core, descriptors=kinds)


def figures(core: Core, *routers: str) -> tuple[dict, dict]:
    done = evaluate(core, makers(core, list(routers)), resamples=60, points=11)
    found = {
        (r["router"], r["metric"]): (r["value"], r["low"], r["high"], r["n"])
        for r in done.metrics.to_pylist()
        if "[params" in r["metric"]
    }
    return found, dict(done.facts)


def test_figures_are_those_of_the_pool_without_the_model(sized: Core) -> None:
    assert dict(sized.costs) == {}
    assert sized.lacking == {"params": ("microsoft/phi-2",)}
    found, facts = figures(sized, "knn-as-printed", "best-generalist")
    left = priced_in(sized, "params", [name for name in NAMES if name != "microsoft/phi-2"])
    alone, _ = figures(left, "knn-as-printed", "best-generalist")
    assert {name.partition("[")[0] for _, name in found} >= {
        "audc", "audc_budget", "qnc", "utility", "accuracy_at_budget", "mean_cost",
    }  # fmt: skip
    assert found == alone
    assert facts["measures"] == []
    pool = facts["sub_pools"]["params"]
    assert sorted(pool["models"]) == ["a-7b", "b-13b", "c-70b"]
    right = np.nanmean(sized.take(sized.rows("dense", "test")).labels, axis=0)
    phi = float(right[sized.place("microsoft/phi-2")])
    assert pool["left_out"] == {"microsoft/phi-2": pytest.approx(phi)}
    (words,) = (one for one in facts["missing"] if "params" in one)
    assert words == (
        "figures in params are over the 3 models whose cost is known: routers choose among them; "
        f"left out: microsoft/phi-2 (accuracy {phi:.1%})"
    )


def test_what_needs_no_cost_is_over_all_models(sized: Core) -> None:
    done = evaluate(sized, makers(sized, ["knn"]), resamples=20, points=5)
    assert "microsoft/phi-2" in set(done.choices.column("model_id").to_pylist())
    assert done.facts["n_models"] == 4


def test_a_router_that_learns_from_costs_is_fitted_on_the_sub_pool(sized: Core) -> None:
    found, facts = figures(sized, "cscr")
    left = priced_in(sized, "params", ["a-7b", "b-13b", "c-70b"])
    assert found == figures(left, "cscr")[0]
    assert "none is weighed" in " ".join(facts["not_as_published"]["cscr"])
    fitted = ROUTERS.get("cscr")(seed=0).fit(left.training("dense"))
    assert fitted.not_as_published == ()


def test_no_sub_pool_of_one(sized: Core) -> None:
    one = np.where(np.isin(sized.model_ids, ["a-7b"]), 7.0, np.nan)
    bare = replace(sized, part_costs={"params": np.broadcast_to(one, sized.labels.shape)})
    _, facts = figures(bare, "best-generalist")
    assert facts["sub_pools"] == {}
    assert any(words.startswith("no figures in params: not known of") for words in facts["missing"])


def test_a_part_that_is_priced_beside_a_whole_measure(core: Core) -> None:
    """Dollars of two models, tokens of all: figures in both, each said to be over what."""
    first = core.model_ids[0]
    usd = core.costs["usd"].copy()
    usd[:, 0] = np.nan
    mixed = replace(
        core,
        costs={name: cost for name, cost in core.costs.items() if name != "usd"},
        part_costs={"usd": usd},
    )
    done = evaluate(mixed, makers(mixed, ["knn-as-printed"]), resamples=20, points=5)
    assert set(done.facts["measures"]) == set(core.costs) - {"usd"}
    assert list(done.facts["sub_pools"]["usd"]["left_out"]) == [first]
    chosen = {r["metric"]: r["value"] for r in done.metrics.to_pylist() if r["router"] == "oracle"}
    assert {"audc[usd]", "audc[tokens]"} <= set(chosen)


def test_a_pool_of_models_of_known_cost_has_whole_costs(sized: Core) -> None:
    known = sized.with_models(("c-70b", "a-7b"))
    assert list(known.costs) == ["params"]
    assert known.costs["params"][0].tolist() == [70.0, 7.0]
    assert not known.part_costs
    part = sized.with_models(("microsoft/phi-2", "a-7b"))
    assert not part.costs
    assert part.lacking == {"params": ("microsoft/phi-2",)}
