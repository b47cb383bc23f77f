"""The zoo's report where costs are known of some models only: winners choose among these."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.flows.cli import run
from tests.support.worded_release import worded_release

ROUTERS = "knn,eagle,pareto-random"


def test_winners_have_cost_figures_on_the_models_of_known_cost(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    release = worded_release(tmp_path / "toy" / "1.0.0")
    place = release / "data" / "models.parquet"
    models = pq.read_table(place)
    names = models.column("model_id").to_pylist()
    for name, values in {"params_b": [7.0, 70.0, None], "price_in": [None] * 3}.items():
        at = models.column_names.index(name)
        models = models.set_column(at, models.schema.field(at), pa.array(values, pa.float64()))
    pq.write_table(models, place)
    command = ["zoo", "run", str(release), "--routers", ROUTERS, "--out", "z", "--splits", "0"]
    assert run([*command, "--encoders", "tfidf", "--resamples", "100"]) == 0
    told = json.loads(Path("z/tfidf/evaluation.json").read_text())
    assert sorted(told["facts"]["sub_pools"]["params"]["models"]) == sorted(names[:2])
    rows = pq.read_table("z/tfidf/metrics.parquet").to_pylist()
    found = {(row["router"], row["metric"]): row for row in rows}
    assert found["knn", "utility[params,0.5]"]["value"] is not None
    # Trap: scores that were kept used to lose what they mean, and any number was weighed.
    assert found["eagle", "utility[params,0.5]"]["value"] is None
    assert "strength" in found["eagle", "utility[params,0.5]"]["reason"]
    # One that learns from costs learns the two models' costs.
    assert 7.0 <= found["pareto-random", "mean_cost[params]"]["value"] <= 70.0
