"""What changed outside: retired and new models stop or are told before money is spent."""

from __future__ import annotations

import json

import pytest
import yaml

from routeyard.flows.build import build
from routeyard.flows.deploy import changes, refresh
from routeyard.flows.recipe import load
from routeyard.flows.tracking import start
from routeyard.pipelines.common.errors import RecipeError
from tests.flows.model_endpoint import endpoint
from tests.support.small_recorded import write


def asked(folder, served, *models, **provider):
    pool = {
        "providers": [{"name": "p", "base_url": served.url, **provider}],
        "models": [{"model_id": name, "provider": "p"} for name in models],
    }
    return write(folder, pool=pool, collect={"retry": {"attempts": 1}})


def run(recipe, folder):
    return start(refresh, recipe=str(recipe), workspace=str(folder / "yard"), jobs=1)


def states(rows):
    return [row["state"] for row in rows]


def test_a_retired_model_stops_the_run_before_anything_is_asked(tmp_path):
    with endpoint("one", "two") as served:
        recipe = asked(tmp_path, served, "one", "two")
        first = run(recipe, tmp_path)
        assert first["status"] == "released"
        assert first["changes"] == []
        before = dict(served.asked)
        served.models = ["one", "three"]
        # All its answers are in the ledger: told, and nothing stops.
        again = run(recipe, tmp_path)
        assert again["status"] == "unchanged"
        assert states(again["changes"]) == ["retired", "new"]
        # A question more: both models lack an answer, and one of them cannot give it.
        with (tmp_path / "questions.jsonl").open("a") as out:
            out.write(json.dumps({"id": "99", "question": "What is 9 + 9?", "answer": "18"}) + "\n")
        with pytest.raises(RecipeError, match=r"listed by their provider no more: two \(1 answers"):
            run(recipe, tmp_path)
        assert dict(served.asked) == before
        # Back in the list: the run goes on where it stopped.
        served.models = ["one", "two"]
        assert run(recipe, tmp_path)["status"] == "released"
        assert served.asked["two"] == before["two"] + 1
        # Without a list nothing is known, nobody is retired, and the last list is kept.
        served.lists = False
        found = changes(load(str(recipe))[0], tmp_path / "yard")
        assert set(states(found.rows)) == {"unknown"}
        assert found.retired == []
        assert run(recipe, tmp_path)["status"] == "unchanged"
        kept = json.loads((tmp_path / "yard" / "runs" / "small.listed.json").read_text())
        assert sorted(kept["p"]) == ["one", "two"]


def test_a_model_that_was_never_listed_is_asked(tmp_path):
    # Aliases and routes are served without standing in any list.
    with endpoint("one", "one:fast") as served:
        recipe = asked(tmp_path, served, "one:fast")
        served.reply, plain = lambda *said: hide(plain(*said)), served.reply

        def hide(said):
            status, body = said
            if "data" in body:
                body["data"] = [one for one in body["data"] if one["id"] == "one"]
            return status, body

        found = changes(load(str(recipe))[0], tmp_path / "yard")
        assert states(found.rows) == ["not listed"]
        assert found.retired == []
        start(build, recipe=str(recipe), workspace=str(tmp_path / "yard"), until="collect")
        assert served.asked["one:fast"] == 12


def test_a_price_that_a_provider_lists_otherwise_is_told(tmp_path):
    with endpoint("one", "two") as served:
        recipe = asked(tmp_path, served, "one", "two", price_list="openrouter")
        said = yaml.safe_load(recipe.read_text())
        for model in said["pool"]["models"]:
            model.update(price_in=1.0, price_out=2.0, price_date="2026-11-01")
        recipe.write_text(yaml.safe_dump(said))
        served.reply, plain = lambda *said: priced(plain(*said)), served.reply

        def priced(said):
            for one in said[1].get("data", []):
                per_million = 1 if one["id"] == "one" else 5
                one["pricing"] = {"prompt": f"{per_million}e-6", "completion": "2e-6"}
            return said

        found = changes(load(str(recipe))[0], tmp_path / "yard")
    assert states(found.rows) == ["price differs"]
    assert "two: the pool says 1 in and 2 out, the provider 5 in and 2 out" in found.rows[0]["why"]


def test_recorded_answers_ask_no_provider(tmp_path):
    pool = {
        "providers": [{"name": "p", "base_url": "$ROUTEYARD_UNSET/v1"}],
        "models": [{"model_id": "careful"}, {"model_id": "hasty"}],
    }
    recipe = load(str(write(tmp_path, pool=pool)))[0]
    assert changes(recipe, tmp_path / "yard").rows == []
