from __future__ import annotations

import json

import numpy as np
import pytest

from routeyard.flows.evaluation.released import read_release
from routeyard.pipelines.common.errors import SourceError, UnknownName
from routeyard.pipelines.common.matrix import scatter
from routeyard.pipelines.release.query import SAVED, saved
from routeyard.pipelines.release.reader import open_release


def test_one_call_each_for_relation_arrow_pandas_and_numpy(release, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_release(release) as opened:
        assert opened.relation("labels").filter("correct").count("*").fetchall() == [(9,)]
        assert opened.arrow("responses").num_rows == 17
        frame = opened.pandas("labels")
        assert frame.groupby("model_id", observed=True)["score"].mean().to_dict() == {
            "m0": 1.0,
            "m1": 0.5,
            "m2": 0.0,
        }
        scores, costs = opened.matrix("score"), opened.matrix("cost_usd")
        assert scores.values.shape == costs.values.shape == (6, 3)
        # The answer that is missing is NaN in both, not 0.
        assert np.isnan(scores.values[5, 2])
        assert np.isnan(costs.values[5, 2])
        assert np.nansum(scores.values) == 9


def test_an_unknown_cost_makes_the_sum_unknown(write, tables):
    responses = tables["responses"].to_pylist()
    responses[0].update(cost_usd=None, cost_source=None)
    from routeyard.schemas import RESPONSES

    path = write({**tables, "responses": RESPONSES.from_rows(responses)}).path
    with open_release(path) as opened:
        assert np.isnan(opened.matrix("cost_usd").values).sum() == 2
        row = opened.sql(SAVED["cost_of"].sql).to_pylist()
    by = {r["model_id"]: r["usd_per_correct"] for r in row}
    # m0 has a call of unknown cost, m2 nothing correct: neither is free.
    assert by["m0"] is None
    assert by["m2"] is None
    assert by["m1"] == pytest.approx(2e-5 * 6 / 3)


def test_scores_are_read_from_the_wide_table_and_are_those_of_the_long_one(release):
    with open_release(release) as opened:
        fast = opened.matrix("score")
        rows = opened.arrow("labels").select(["query_id", "model_id", "score"])
        slow = scatter(
            rows, "score", queries=fast.queries, models=fast.models, dtype=fast.values.dtype
        )
        assert fast.queries == opened.arrow("queries").column("query_id").to_pylist()
        np.testing.assert_array_equal(fast.values, slow.values)
        (release / "data/labels_wide.parquet").write_bytes(b"PAR1 cut")
        with pytest.raises(SourceError, match="labels_wide"):
            opened.matrix("score")
        # Without it the long table answers, as in a release of an earlier format.
        (release / "data/labels_wide.parquet").unlink()
        np.testing.assert_array_equal(opened.matrix("score").values, fast.values)


def test_labels_wide_is_the_long_table_turned(release):
    with open_release(release) as opened:
        wide = opened.labels_wide()
        assert wide.column_names == ["query_id", "m0", "m1", "m2"]
        long = {
            (r["query_id"], r["model_id"]): r["score"] for r in opened.arrow("labels").to_pylist()
        }
        # The same stands in the release for readers without our code, and in SQL.
        assert opened.sql("SELECT count(m2) AS n FROM labels_wide").to_pylist() == [{"n": 5}]
        for row in wide.to_pylist():
            for model in ("m0", "m1", "m2"):
                assert row[model] == long.get((row["query_id"], model))


def test_there_are_twelve_saved_queries_and_all_answer(release):
    assert len(SAVED) == 12
    with open_release(release) as opened:
        answers = {name: opened.sql(query.sql).to_pylist() for name, query in SAVED.items()}
    assert [r["model_id"] for r in answers["leaderboard"]] == ["m0", "m1", "m2"]
    assert {r["task"]: r["gap"] for r in answers["oracle"]} == {"even": 0.0, "odd": 0.0}
    # Three models answer even questions right twice; the cheapest of them is m1.
    assert answers["cheapest_correct"][0]["model_id"] in ("m0", "m1")
    assert sum(r["queries"] for r in answers["cheapest_correct"]) == 6
    assert answers["missing"][0] == {
        "model_id": "m2",
        "queries": 6,
        "labelled": 5,
        "missing": 1,
        "unreadable": 0,
    }
    assert answers["contested"][0]["models"] == ["m1"]
    assert answers["hardest"][0]["solved_by"] == 1
    assert answers["unsolved"] == []
    assert sum(r["queries"] for r in answers["splits"]) == 6


def test_unknown_names_are_suggested(release):
    with pytest.raises(UnknownName, match="no saved query"):
        saved("oracl")
    with open_release(release) as opened, pytest.raises(UnknownName):
        opened.arrow("lables")


def test_what_evaluates_a_release_reads_its_manifest_as_a_strangers(release, tmp_path):
    """`evaluate`, `certify` and `zoo run` read no more of it than `query` does."""
    path = release / "manifest.json"
    text = path.read_text()
    odd = json.dumps({**json.loads(text), "recipe": {"curate": 5}})
    path.write_text(odd)
    assert "duplicates" not in read_release(release)  # nobody looked; was a traceback
    for bad in ("[" * 60_000, "[]", "{}", odd.replace('{"curate": 5}', '"x"')):
        path.write_text(bad)
        with pytest.raises(SourceError, match="manifest cannot be read"):
            read_release(release)
    path.write_text(text)
    # A link is followed to the sealed content, as in a hub's cache, and to nothing else.
    labels, elsewhere = release / "data" / "labels.parquet", tmp_path / "elsewhere.parquet"
    labels.rename(elsewhere)
    labels.symlink_to(elsewhere)
    assert len(read_release(release)["labels"]) == 17
    elsewhere.write_bytes(bytes(elsewhere.stat().st_size))
    with pytest.raises(SourceError, match="link to something else"):
        read_release(release)
