"""`routeyard zoo tune` on a planted release: grid, saved routers, studies, kill and resume."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from routeyard.flows.cli import run
from routeyard.pipelines.common.errors import BadInput, Unsafe
from routeyard.pipelines.routers import saved

ROOT = Path(__file__).parents[2]
HOW = ["--batch", "16", "--rate", "3e-3", "--tokens", "32", "--patience", "9"]


def grid(release: Path, tiny: Path, out: Path, routers: str) -> Path:
    """Frozen on two amounts of data, tuned on the larger."""
    words = ["zoo", "tune", release, "--encoders", tiny, "--out", out, "--routers", routers]
    for more in (["--rows", "60,all", "--ways", "frozen"], ["--epochs", "10", "--ways", "tuned"]):
        assert run([*map(str, words), *more, *HOW]) == 0
    return out


@pytest.fixture(scope="module")
def done(release: Path, tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return grid(release, tiny, tmp_path_factory.mktemp("out") / "tuned", "mlp")


@pytest.fixture(scope="module")
def both(done: Path, release: Path, tiny: Path) -> Path:
    """A second head in the same folder: what is there already is not made again."""
    before = {p: p.stat().st_mtime_ns for p in done.glob("mlp-*/run.json")}
    grid(release, tiny, done, "mlp,zooter")
    assert {p: p.stat().st_mtime_ns for p in done.glob("mlp-*/run.json")} == before
    return done


def records(out: Path) -> dict[str, Any]:
    return {p.parent.name: json.loads(p.read_text()) for p in out.glob("*/run.json")}


@pytest.mark.extensions
def test_a_trained_encoder_finds_the_order_that_a_frozen_one_does_not(done: Path) -> None:
    found = records(done)
    assert found["mlp-tiny-240-tuned-42"]["test"] > 0.75
    assert found["mlp-tiny-240-frozen-42"]["test"] < 0.6
    # Nothing of a checkpoint is left, and no pickle anywhere.
    assert not list(done.rglob("checkpoints"))
    kinds = {p.suffix for p in done.rglob("*") if p.is_file()}
    assert kinds <= {".json", ".safetensors", ".parquet", ".md", ".txt"}


@pytest.mark.extensions
@pytest.mark.slow
def test_the_grid_holds_every_cell_and_the_neighbours_beside(both: Path) -> None:
    found = records(both)
    assert sorted(found) == sorted(
        [f"knn-tiny-{n}-frozen-42" for n in (60, 240)]
        + [
            f"{router}-tiny-{n}-{how}-42"
            for router in ("mlp", "zooter")
            for n, how in ((60, "frozen"), (240, "frozen"), (240, "tuned"))
        ]
    )
    assert found["zooter-tiny-240-tuned-42"]["test"] > 0.75
    assert found["zooter-tiny-240-frozen-42"]["test"] < 0.6


@pytest.mark.extensions
def test_the_router_is_asked_as_any_other(
    done: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    place = done / "mlp-tiny-240-tuned-42" / "router"
    for text, model in (("stone alpha omega king", "left"), ("omega tree alpha", "right")):
        assert run(["route", str(place), text, "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert (said["router"], said["encoder"], said["model_id"]) == ("mlp", "./encoder", model)
    # It may be moved; it may not bring files that could run code.
    moved = tmp_path / "moved"
    shutil.copytree(place, moved)
    assert run(["route", str(moved), "alpha omega"]) == 0
    (moved / "encoder" / "pytorch_model.bin").write_bytes(b"\x80\x04")
    with pytest.raises(Unsafe, match=r"pytorch_model\.bin"):
        saved.tuned_encoder(moved)
    (moved / "encoder" / "pytorch_model.bin").unlink()
    modules = moved / "encoder" / "modules.json"
    modules.write_text(modules.read_text().replace("sentence_transformers.", "os."))
    with pytest.raises(Unsafe, match="its own code or files"):
        saved.tuned_encoder(moved)
    shutil.rmtree(moved / "encoder")
    with pytest.raises(BadInput, match="lacks its encoder"):
        saved.tuned_encoder(moved)


@pytest.mark.extensions
@pytest.mark.slow
def test_its_scores_join_the_zoo(
    both: Path, release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "zooter-tiny-240-tuned-42"
    words = ["zoo", "run", release, "--routers", "best-generalist", "--encoders", "tfidf"]
    words += ["--own", both / name / f"{name}.parquet", "--out", tmp_path / "zoo", "--no-report"]
    assert run([*map(str, words), "--json"]) == 0
    standings = {row["router"]: row for row in json.loads(capsys.readouterr().out)["standings"]}
    assert standings[name]["mean"] == pytest.approx(records(both)[name]["test"])


@pytest.mark.extensions
@pytest.mark.slow
def test_the_studies_lay_out_data_encoder_and_training(
    both: Path, release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, also = records(both), str(both / "tuned.parquet")
    tables = {}
    for name in ("ablation", "gains", "across"):
        words = ["study", f"tuning_{name}", str(release), "--also", also, "--out", str(tmp_path)]
        assert run([*words, "--resamples", "200"]) == 0
        rows = pq.read_table(tmp_path / f"tuning_{name}.parquet").to_pylist()
        tables[name] = {(r["row"], r["column"]): r for r in rows}
    plain = (found["mlp-tiny-60-frozen-42"]["test"] + found["zooter-tiny-60-frozen-42"]["test"]) / 2
    best = (found["mlp-tiny-240-tuned-42"]["test"] + found["zooter-tiny-240-tuned-42"]["test"]) / 2
    ablation = tables["ablation"]
    assert ablation["60, frozen, tiny", "mean accuracy"]["value"] == pytest.approx(plain)
    gain = ablation["240, tuned, tiny", "Δ"]
    assert gain["value"] == pytest.approx(best - plain)
    assert gain["low"] < gain["value"] < gain["high"]
    assert gain["low"] > 0
    assert ablation["60, frozen, tiny", "Δ"]["note"] == "the baseline"
    gains = tables["gains"]
    knn = found["knn-tiny-240-frozen-42"]["test"] - found["knn-tiny-60-frozen-42"]["test"]
    assert gains["knn", "gain"]["value"] == pytest.approx(knn)
    across = tables["across"]
    row = next(iter(across))[0]
    assert across[row, "Δ"]["value"] == pytest.approx(
        max(found[f"{r}-tiny-240-tuned-42"]["test"] for r in ("mlp", "zooter"))
        - found["knn-tiny-240-frozen-42"]["test"]
    )
    capsys.readouterr()
    # Without the file the study says what would make it.
    assert run(["study", "tuning_ablation", str(release), "--out", str(tmp_path)]) == 2
    assert "routeyard zoo tune" in capsys.readouterr().err


@pytest.mark.extensions
def test_a_plan_loads_no_weights_and_trains_nothing(
    release: Path, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from routeyard.pipelines.common import encoders

    def refuse(encoder: str) -> Any:
        raise AssertionError(f"{encoder} was loaded")

    monkeypatch.setattr(encoders, "loaded", refuse)
    words = ["zoo", "tune", release, "--encoders", f"{tiny},minilm", "--out", tmp_path / "o"]
    assert run([*map(str, words), "--plan", "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert len(found["cells"]) == 2 * 17
    assert all((c["steps"] > 0) == ("tuned" in c["cell"]) for c in found["cells"])
    assert "22.7 million parameters" in said.err
    twice = ["--encoders", f"{tiny},/elsewhere/tiny"]
    for bad in (
        twice,
        ["--routers", "knn"],
        ["--ways", "half"],
        ["--rows", "many"],
        ["--rows", "-3"],
    ):
        assert run([*map(str, words), *bad]) == 2


@pytest.mark.extensions
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_at_any_step_it_comes_to_the_same_figures(
    release: Path, tiny: Path, tmp_path: Path
) -> None:
    words = ["zoo", "tune", release, "--encoders", tiny, "--routers", "routerdc", "--ways", "tuned"]
    words += ["--epochs", "6", "--save-every", "4", *HOW]

    def start(out: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "routeyard", *map(str, words), "--out", str(out)],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    name, kills = "routerdc-tiny-240-tuned-42", 0
    assert start(tmp_path / "whole").wait() == 0
    for _ in range(30):
        one, waited = start(tmp_path / "parts"), time.monotonic()
        begun = {p.name for p in (tmp_path / "parts").rglob("step-*")}
        while one.poll() is None and time.monotonic() - waited < 300:
            now = {p.name for p in (tmp_path / "parts").rglob("step-*")}
            if now - begun and kills < 2:
                one.send_signal(signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.02)
        if one.wait() == 0:
            break
    assert kills == 2
    whole, parts = (
        json.loads((tmp_path / p / name / "run.json").read_text()) for p in ("whole", "parts")
    )
    for key in ("validation", "test", "looks", "best_step", "steps", "fingerprint"):
        assert whole[key] == parts[key], key
    for file in ("router/router.safetensors", "router/encoder/model.safetensors"):
        assert (tmp_path / "whole" / name / file).read_bytes() == (
            tmp_path / "parts" / name / file
        ).read_bytes()
