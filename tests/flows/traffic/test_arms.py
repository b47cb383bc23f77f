"""`routeyard compare`: steps along the axes of a pool, against counts by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from routeyard.datacards.card import render
from routeyard.datacards.files import render as render_files
from routeyard.flows.cli import run
from routeyard.flows.recipe import load
from routeyard.pipelines.common.pool import models_table
from routeyard.pipelines.release.build import write_release
from routeyard.schemas import MODELS
from tests.support.small_release import RECIPE, SOURCES, tiny_tables


def released(tmp_path: Path, *levels: str) -> Path:
    """m1 is right on even questions, m0 on all, m2 on none: efforts of one model in this order."""
    tables = tiny_tables(60)
    places = {name: place for place, name in enumerate(levels)}
    rows = [
        row | {"base_model": "m", "effort": f"e{places[row['model_id']]}",
               "effort_level": places[row["model_id"]]}
        for row in tables["models"].to_pylist()
    ]  # fmt: skip
    made = write_release(
        tables | {"models": MODELS.from_rows(rows)}, recipe=RECIPE, root=tmp_path / "releases",
        sources=SOURCES, render_card=render, render_files=render_files,
    )  # fmt: skip
    return Path(made.path)


@pytest.mark.extensions
def test_more_is_compared_with_less_on_the_questions_both_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = released(tmp_path, "m1", "m0", "m2")
    assert run(["compare", str(release), "--resamples", "300", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    up, down = found["steps"]
    assert (up["less"], up["more"], up["gained"], up["flipped_back"]) == (0.5, 1.0, 0.5, 0.0)
    assert up["gain"][0] == 0.5
    assert 0.33 < up["gain"][1] < 0.5 < up["gain"][2] < 0.67
    assert (down["questions"], down["flipped_back"]) == (59, 1.0)  # m2 lacks the last answer
    assert {task: count for task, (count, _) in down["back"].items()} == {"even": 30, "odd": 29}
    assert found["monotone"] == {"m effort ": "more is not always better: it falls from e1 → e2"}
    assert run(["compare", str(release), "--resamples", "300"]) == 0
    assert "e0 → e1: 0.500 → 1.000" in capsys.readouterr().out


@pytest.mark.extensions
def test_a_pool_without_axes_is_told_how_to_declare_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = write_release(
        tiny_tables(), root=tmp_path / "releases", recipe=RECIPE, sources=SOURCES,
        render_card=render, render_files=render_files,
    )  # fmt: skip
    assert run(["compare", str(made.path)]) == 2
    assert "axes: {effort: [low, medium, high]}" in capsys.readouterr().err


@pytest.mark.extensions
def test_the_shipped_recipe_is_three_models_with_three_efforts() -> None:
    recipe, _ = load("efforts_tiny")
    rows = models_table(recipe.pool).to_pylist()
    assert {(row["base_model"], row["effort"], row["effort_level"]) for row in rows} == {
        (f"smollm2-{model}", effort, level)
        for model in ("q8", "q4", "q2")
        for level, effort in enumerate(("low", "medium", "high"))
    }


@pytest.mark.extensions
@pytest.mark.slow
def test_the_rehearsal_of_three_models_and_efforts_is_built_certified_and_routed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["build", "efforts_tiny", "--rehearse", "-w", str(tmp_path)]) == 0
    release = str(tmp_path / "releases" / "efforts_tiny-rehearsal" / "1.0.0")
    assert run(["verify", release]) == 0
    assert run(["certify", release, "--out", str(tmp_path / "certificate")]) == 0
    capsys.readouterr()
    assert run(["compare", release, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["monotone"].values()) == {"more is better at every step"}
    out = tmp_path / "evaluated"
    routers = ["--router", "two-level", "--router", "ridge", "--router", "random"]
    assert run(["evaluate", release, "--embed", *routers, "--out", str(out)]) == 0
