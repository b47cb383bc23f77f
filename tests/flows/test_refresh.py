"""The refresh: nothing to do, something stale, a failed gate; here directly, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from flows.refresh import refresh, refresh_inline
from flows.run import start
from pipelines.errors import GateFailed
from schemas.recipe import Recipe
from tests.flows.small_recorded import write


def run(recipe, folder, **more):
    return start(refresh, recipe=str(recipe), workspace=str(folder / "yard"), jobs=1, **more)


def edit(recipe, change):
    said = yaml.safe_load(recipe.read_text(encoding="utf-8"))
    change(said)
    recipe.write_text(yaml.safe_dump(said), encoding="utf-8")


def test_nothing_is_done_when_nothing_changed(tmp_path):
    recipe = write(tmp_path)
    first = run(recipe, tmp_path)
    assert first["status"] == "released"
    release = Path(first["release"]["path"])
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "yard").rglob("*") if p.is_file()}
    again = run(recipe, tmp_path)
    assert again == {"status": "unchanged", "release": str(release)}
    after = {p: p.stat().st_mtime_ns for p in (tmp_path / "yard").rglob("*") if p.is_file()}
    assert after == before


def test_a_price_changes_only_what_depends_on_it_and_gives_the_next_version(tmp_path):
    recipe = write(tmp_path)
    run(recipe, tmp_path)

    def dearer(said):
        said["pool"]["models"][0].update(price_in=3.0, price_out=9.0, price_date="2026-11-02")

    edit(recipe, dearer)
    done = run(recipe, tmp_path)
    assert done["status"] == "released"
    assert Path(done["release"]["path"]).name != "1.0.0"
    assert "pool" in done["rebuilt"]
    assert "ingest" not in done["rebuilt"]
    # No answer is read again for a price.
    verdicts = list((tmp_path / "yard" / "stages" / "verdicts").iterdir())
    models = yaml.safe_load(recipe.read_text(encoding="utf-8"))["pool"]["models"]
    assert len(verdicts) == len(models)
    # The first release is as it was, and the third run finds nothing to do.
    assert (tmp_path / "yard" / "releases" / "small" / "1.0.0" / "manifest.json").is_file()
    assert run(recipe, tmp_path)["status"] == "unchanged"


def test_a_failed_gate_stops_without_a_release(tmp_path):
    recipe = write(tmp_path)
    edit(recipe, lambda said: said["release"].pop("waivers"))
    with pytest.raises(GateFailed):
        run(recipe, tmp_path)
    assert not list((tmp_path / "yard").glob("releases/*/*/manifest.json"))


def test_a_recipe_from_the_ui_is_kept_beside_the_workspace(tmp_path):
    path = write(tmp_path)
    recipe = Recipe.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    (tmp_path / "yard").mkdir()
    for found in tmp_path.iterdir():
        if found.is_file() and found != path:
            (tmp_path / "yard" / found.name).write_bytes(found.read_bytes())
    done = start(refresh_inline, recipe=recipe, workspace=str(tmp_path / "yard"))
    assert done["status"] == "released"
    assert (tmp_path / "yard" / f"{recipe.name}.yaml").is_file()
