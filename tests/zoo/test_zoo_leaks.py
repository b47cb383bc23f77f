"""What a zoo's table says where test questions stand in train, and where costs are unknown."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.flows.cli import run
from tests.support.worded_release import worded_release


@pytest.fixture(scope="module")
def leaking(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    """(release, ids of the 20 of 50 test questions that stand in train)."""
    release = worded_release(tmp_path_factory.mktemp("release") / "toy" / "1.0.0")
    place = release / "data" / "queries.parquet"
    queries = pq.read_table(place)
    texts = queries.column("prompt").to_pylist()
    rows = np.arange(3, 83, 4)
    for row in rows:
        texts[row] = texts[row - 3].upper()
    column = queries.schema.get_field_index("prompt")
    pq.write_table(queries.set_column(column, queries.schema.field(column), [texts]), place)
    return release, np.array(queries.column("query_id").to_pylist())[rows]


COMMAND = ["--encoders", "tfidf", "--resamples", "100", "--splits", "0"]


def test_winners_are_given_with_and_without_them(leaking, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    release, out = leaking
    routers = "knn,task-map,eagle:text"
    assert run(["zoo", "run", str(release), "--routers", routers, "--out", "z", *COMMAND]) == 0
    page = Path("z/table.md").read_text()
    assert "20 test questions are also in train" in page
    assert "| router | none, without leaked | none, all rows | tfidf, without leaked |" in page
    choices = pq.read_table("z/tfidf/choices.parquet").to_pandas()
    standings = {one["router"]: one for one in json.loads(Path("z/standings.json").read_text())}
    for name, one in standings.items():
        own = choices[choices.router == name]
        assert one["mean"] == pytest.approx(own.score.mean())
        assert one["clean"] == pytest.approx(own[~own.query_id.isin(out)].score.mean())
        assert f"{100 * one['clean']:.2f} | {100 * one['mean']:.2f}" in page
    assert any(one["clean"] != one["mean"] for one in standings.values())
    # The report is ranked by what the table is ordered by.
    told = json.loads(Path("z/tfidf/evaluation.json").read_text())
    assert told["facts"]["leaked"] == 20
    assert told["facts"]["headline"] == "accuracy_without_leaks"
    ranked = {one["router"]: one["value"] for one in told["ranking"]}
    assert ranked == {name: pytest.approx(one["clean"]) for name, one in standings.items()}


def test_presets_of_the_authors_are_scored_over_all_rows(leaking, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    release, _ = leaking
    assert run(["zoo", "run", str(release), "--routers", "eagle:text", "--out", "z", *COMMAND]) == 0
    assert "| router | tfidf, all rows | tfidf, without leaked |" in Path("z/table.md").read_text()
    told = json.loads(Path("z/tfidf/evaluation.json").read_text())
    assert told["facts"]["headline"] == "accuracy"


def test_where_nothing_leaks_there_is_one_figure_and_holes_are_said(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    release = worded_release(tmp_path / "toy" / "1.0.0")
    place = release / "data" / "labels.parquet"
    labels = pq.read_table(place)
    # Of every test question, which is every fourth, the first of three models has no label.
    kept = [row for row in range(labels.num_rows) if row % 12 != 9]
    pq.write_table(labels.take(kept), place)
    command = ["zoo", "run", str(release), "--routers", "knn,task-map", "--out", "z", *COMMAND]
    assert run([*command, "--no-report"]) == 0
    page = Path("z/table.md").read_text()
    assert "| router | none | tfidf | seeds |" in page
    assert "are also in train" not in page
    assert "33.3% of the test labels are missing" in page


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
