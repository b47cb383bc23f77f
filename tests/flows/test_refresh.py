"""The refresh: nothing to do, something stale, a failed gate; here directly, without a server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from routeyard.flows.build import status
from routeyard.flows.deploy import refresh
from routeyard.flows.tracking import start
from routeyard.pipelines.common.errors import BadInput, GateFailed
from tests.support.small_recorded import write


def run(recipe, folder, **more):
    return start(refresh, recipe=str(recipe), workspace=str(folder / "yard"), jobs=1, **more)


def edit(recipe, change):
    said = yaml.safe_load(recipe.read_text(encoding="utf-8"))
    change(said)
    recipe.write_text(yaml.safe_dump(said), encoding="utf-8")


def test_nothing_is_done_when_nothing_changed(small, tmp_path):
    release = tmp_path / "yard" / "releases" / "small" / "1.0.0"
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "yard").rglob("*") if p.is_file()}
    again = run(small, tmp_path)
    unchanged = {"status": "unchanged", "release": str(release)}
    assert again == {**unchanged, "changes": [], "published": None}
    after = {p: p.stat().st_mtime_ns for p in (tmp_path / "yard").rglob("*") if p.is_file()}
    assert after == before


def test_a_price_changes_only_what_depends_on_it_and_gives_the_next_version(small, tmp_path):
    recipe = small

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


def test_a_failed_gate_stops_without_a_release(small, tmp_path):
    recipe = small
    shutil.rmtree(tmp_path / "yard" / "releases")
    edit(recipe, lambda said: said["release"].pop("waivers"))
    with pytest.raises(GateFailed):
        run(recipe, tmp_path, publish_to=str(tmp_path / "public"))
    assert not list((tmp_path / "yard").glob("releases/*/*/manifest.json"))
    assert not (tmp_path / "public").exists()


def test_a_release_is_published_once_and_a_cut_transfer_is_continued(small, tmp_path):
    recipe, public = small, tmp_path / "public"
    first = run(recipe, tmp_path, publish_to=str(public))
    assert first["published"] == str(public / "small" / "1.0.0")
    there = public / "small" / "1.0.0" / "manifest.json"
    assert there.read_bytes() == (Path(first["release"]) / "manifest.json").read_bytes()
    assert run(recipe, tmp_path, publish_to=str(public))["published"] is None
    # Cut off: the manifest, which goes last, and the note of success are not there.
    there.unlink()
    (tmp_path / "yard" / "runs" / "small.published.json").unlink()
    again = run(recipe, tmp_path, publish_to=str(public))
    assert again["status"] == "unchanged"
    assert there.is_file()
    # A release that is damaged goes nowhere.
    (Path(first["release"]) / "data" / "labels.parquet").write_bytes(b"")
    with pytest.raises(GateFailed, match="does not hold"):
        run(recipe, tmp_path, publish_to=str(tmp_path / "elsewhere"))
    assert not (tmp_path / "elsewhere").exists()


def test_a_target_with_a_password_is_refused_before_anything_is_built(tmp_path):
    recipe = write(tmp_path)
    with pytest.raises(BadInput) as caught:
        run(recipe, tmp_path, publish_to="ftp://me:hunter2@host/releases")
    assert "hunter2" not in str(caught.value)
    assert not (tmp_path / "yard" / "stages").exists()


def test_publishing_to_a_hub(small, tmp_path, warm_python):
    from tests.support.hub import Hub

    recipe, hub = small, Hub()
    more = {"workspace": str(tmp_path / "yard"), "publish_to": "hub:org/small"}
    script = (
        "import json, pathlib\n"
        "from routeyard.flows.deploy import refresh\n"
        f"again = lambda: print(refresh.fn({str(recipe)!r}, **{more!r})['published'])\n"
        "again()\n"
        "note = pathlib.Path('yard/runs/small.published.json')\n"
        # Killed between the tag and the note: what is there is compared.
        "said = json.loads(note.read_text())\n"
        "note.write_text('{}')\n"
        "again()\n"
        "assert json.loads(note.read_text()) == said\n"
    )
    environment = {
        "HF_ENDPOINT": hub.url,
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
        "HF_TOKEN": "hf_secret",
        "HF_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    try:
        # The client reads the hub's address when it is imported: a process of its own.
        done = subprocess.run(
            [*warm_python, "-c", script],
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
        )
    finally:
        hub.close()
    assert done.returncode == 0, done.stderr
    assert list(hub.tags) == ["v1.0.0"]
    assert "data/labels.parquet" in hub.tags["v1.0.0"]
    assert done.stdout.split()[-1] == "None"
    assert "hf_secret" not in done.stdout + done.stderr


def test_a_scorer_of_another_version_makes_its_verdicts_stale(tmp_path, monkeypatch):
    # A third party's scorer: its code is in no room whose hash the stage takes.
    from routeyard.pipelines.label.scorers import SCORERS

    module = ModuleType("third_party_scorer")
    monkeypatch.setitem(sys.modules, "third_party_scorer", module)
    monkeypatch.setitem(SCORERS.targets, "theirs", "third_party_scorer:SCORER")
    numeric = SCORERS.get("numeric")
    module.SCORER = replace(numeric, name="theirs", version="1")
    recipe = write(tmp_path)
    edit(recipe, lambda said: said["sources"][0].update(scorer="theirs"))
    assert run(recipe, tmp_path)["status"] == "released"
    assert run(recipe, tmp_path)["status"] == "unchanged"
    module.SCORER = replace(numeric, name="theirs", version="2")
    rows = {row["stage"]: row for row in status(str(recipe), str(tmp_path / "yard"))}
    assert rows["label"]["state"] == "stale"
    done = run(recipe, tmp_path)
    assert "label" in done["rebuilt"]
    assert not {"ingest", "pool", "collect"} & set(done["rebuilt"])
