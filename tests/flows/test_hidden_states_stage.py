"""The stage `hidden_states`: the release holds what a model's layers make of its questions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from routeyard.flows.build import run_build, status
from routeyard.flows.recipe import load
from routeyard.pipelines.common.errors import BadInput, RecipeError
from routeyard.pipelines.evaluate.signals import load as load_model
from routeyard.pipelines.evaluate.signals import pooled
from tests.signals.conftest import *  # noqa: F403  # the tiny models
from tests.support.small_recorded import write


def recipe_with(tmp_path: Path, weights: str, **more: object) -> str:
    path = write(tmp_path)
    content = yaml.safe_load(path.read_text())
    model = content["pool"]["models"][0]
    model["prompt"] = "Short, please. {{ prompt }}"
    content["hidden_states"] = {"model_id": model["model_id"], "weights": weights, **more}
    path.write_text(yaml.safe_dump(content))
    return str(path)


def test_a_release_has_the_layers_of_its_questions_as_the_model_is_asked_them(
    tmp_path: Path, llama: Path
) -> None:
    recipe, yard = recipe_with(tmp_path, str(llama)), str(tmp_path / "yard")
    release = Path(run_build(recipe, yard)["release"]["path"])
    rows = pq.read_table(release / "data" / "hidden_states.parquet").to_pylist()
    questions = pq.read_table(release / "data" / "queries.parquet").to_pylist()
    assert len(rows) == len(questions) * 4
    assert {row["model_id"] for row in rows} == {load(recipe)[0].pool.models[0].model_id}
    one = questions[0]
    mine = [np.array(row["vector"]) for row in rows if row["query_id"] == one["query_id"]]
    told = pooled(load_model(str(llama)), [f"Short, please. {one['prompt']}"])[0]
    np.testing.assert_allclose(np.array(mine), told, rtol=1e-4, atol=1e-5)
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["tables"]["hidden_states"]["kind"] == "add_on"
    # Nothing of it waits in the cache, and all of it is fresh.
    assert not any((tmp_path / "yard" / "cache" / "hidden_states").glob("*"))
    assert {row["state"] for row in status(recipe, yard)} == {"fresh"}


def test_what_names_no_weights_is_said_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_WEIGHTS", raising=False)
    recipe = recipe_with(tmp_path, "$NO_SUCH_WEIGHTS")
    with pytest.raises(BadInput, match="NO_SUCH_WEIGHTS is not set") as error:
        run_build(recipe, str(tmp_path / "yard"))
    assert "export NO_SUCH_WEIGHTS=FOLDER" in str(error.value.next_step)
    assert not (tmp_path / "yard" / "stages").exists()


def test_the_layers_are_those_of_a_model_of_the_pool(tmp_path: Path) -> None:
    path = write(tmp_path)
    content = yaml.safe_load(path.read_text())
    content["hidden_states"] = {"model_id": "nobody", "weights": "w"}
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(RecipeError, match="'nobody', which is not in the pool"):
        load(str(path))
