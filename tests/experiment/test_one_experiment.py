"""Every command reads one table of predictions: who asks again what was fitted, fits nothing."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import routeyard
from routeyard.flows.cli import run
from routeyard.flows.evaluation.evaluate import store_in
from routeyard.flows.evaluation.released import files_of_fits, read_release
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import core_of
from routeyard.pipelines.evaluate.experiment import own, registered
from routeyard.pipelines.evaluate.fit import Experiment
from routeyard.pipelines.evaluate.settings import EvaluationSettings
from routeyard.pipelines.routers.references import BestGeneralist
from tests.support.worded_release import worded_release

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("without_pages")

#: A stochastic router with a default seed that notes each of its fits, with the seed.
MINE = """
import os, time
import numpy as np
class Mine:
    name = "mine"
    def __init__(self, seed=3):
        self.seed = seed
    def fit(self, train):
        if str(self.seed) == os.environ.get("MINE_SLEEPS"):
            time.sleep(60)
        with open(os.environ["MINE_FITS"], "a") as file:
            print(self.seed, file=file)
        self.m = len(train.model_ids)
    def scores(self, queries):
        return np.random.default_rng(self.seed).random((len(queries), self.m))
"""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return worded_release(tmp_path_factory.mktemp("release") / "toy" / "1.0.0")


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """`file.py:Class` of the router; `fits` reads what it noted."""
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.setenv("MINE_FITS", str(tmp_path / "fits"))
    monkeypatch.chdir(tmp_path)
    return f"{tmp_path / 'mine.py'}:Mine"


def fits(folder: Path) -> list[int]:
    path = folder / "fits"
    return [int(seed) for seed in path.read_text().split()] if path.exists() else []


EVALUATE = ["--embed", "--encoder", "tfidf", "--only-given", "--resamples", "100"]
EVALUATE += ["--no-certificate", "--cache", "cache"]
ZOO = ["--encoders", "tfidf", "--no-report", "--cache", "cache"]


def test_one_module_fits_routers() -> None:
    """`.fit(` is called in `experiment/fit.py`, else by a router on itself or on a library's."""
    found = []
    for top in ("pipelines", "papers", "flows", "datacards", "routeyard", "benchmarks"):
        for path in sorted((ROOT / top).rglob("*.py")):
            if path.is_relative_to(ROOT / "pipelines" / "routers"):
                continue
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if ".fit(" in text else ():
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                    continue
                if node.func.attr == "fit":
                    found.append((str(path.relative_to(ROOT)), ast.unparse(node.func.value)))
    libraries = ("TruncatedSVD(", "make_pipeline(")
    ours = [one for one in found if not one[1].startswith(libraries)]
    assert ours == [("pipelines/evaluate/fit.py", "router")]


def test_evaluate_after_zoo_run_fits_nothing(release, tmp_path, monkeypatch, mine, counted) -> None:
    zoo = ["zoo", "run", str(release), "--out", "zoo", *ZOO, "--own", mine]
    assert run([*zoo, "--routers", "knn,task-map,random"]) == 0
    # The protocol's seeds, five drawn splits, and the fit that `evaluate` makes by default.
    assert sorted(fits(tmp_path)) == sorted([42, 1337, 2026, 7, 99, *[42] * 5, 0])
    first = len(counted)
    assert {"knn", "task-map", "random", "mine"} <= set(counted)
    evaluate = ["evaluate", str(release), "--out", "found", *EVALUATE, "--router-from", mine]
    by_default = [*evaluate, "--router", "knn"]  # whose own setting is none of the protocol's
    for name in ("task-map", "random"):
        evaluate += ["--router", name]
    assert run([*by_default, *evaluate[-4:]]) == 0
    assert run([*evaluate, "--seeds", "zoo"]) == 0
    assert counted[first:] == []
    # The figures are those of the same fits, and of a run that finds nothing kept.
    rows = pq.read_table("found/metrics.parquet").to_pylist()
    ours = {r["router"]: r["value"] for r in rows if r["metric"] == "accuracy"}
    cells = pq.read_table("zoo/cells.parquet").to_pandas()
    assert ours["mine"] == cells[(cells.router == "mine") & (cells.seed == 42)].test_accuracy.item()
    fresh = [*evaluate[:3], "fresh", *evaluate[4:], "--seeds", "zoo", "--cache", "other"]
    assert run(fresh) == 0
    assert len(counted) > first
    assert pq.read_table("fresh/metrics.parquet").to_pylist() == rows
    # Another seed, another setting's default and changed code are other fits.
    before = fits(tmp_path)
    assert run([*evaluate, "--seeds", "3"]) == 0
    assert fits(tmp_path)[len(before) :] == [1, 2]
    (tmp_path / "mine.py").write_text(MINE + "\n# now\n")
    assert run([*evaluate, "--seeds", "3"]) == 0
    assert fits(tmp_path)[len(before) :] == [1, 2, 0, 1, 2]


def test_zoo_run_after_evaluate_reads_what_is_kept(release, tmp_path, mine, counted) -> None:
    evaluate = ["evaluate", str(release), "--out", "found", *EVALUATE, "--router", "knn"]
    assert run(evaluate) == 0
    assert counted == ["knn"]
    assert run(evaluate) == 0
    assert counted == ["knn"]
    # A certificate is a view too: its folds are fitted once.
    certified = [one for one in evaluate if one != "--no-certificate"]
    assert run(certified) == 0
    folds = len(counted)
    assert folds > 1
    arguments = ["certify", str(release), "--out", "c", "--embed", "--encoder", "tfidf"]
    assert run([*arguments, "--resamples", "200", "--cache", "cache"]) == 0
    assert len(counted) == folds


def test_seeds_of_a_users_router_differ_in_all_three_doors(release, tmp_path, mine) -> None:
    evaluate = ["evaluate", str(release), "--out", "found", *EVALUATE, "--router-from", mine]
    assert run([*evaluate, "--seeds", "5"]) == 0
    assert fits(tmp_path) == [0, 1, 2, 3, 4]
    rows = pq.read_table("found/metrics.parquet").to_pylist()
    spread = {r["metric"]: r["value"] for r in rows if r["router"] == "mine"}
    assert spread["accuracy_seed_sd"] > 0
    zoo = ["zoo", "run", str(release), "--out", "zoo", *ZOO, "--routers", "random", "--own", mine]
    # The same seeds: nothing is fitted for the test questions, validation is asked anew.
    assert run([*zoo, "--seeds", "5"]) == 0
    cells = pq.read_table("zoo/cells.parquet").to_pandas()
    own_cells = cells[cells.router == "mine"]
    assert sorted(own_cells.seed) == [0, 1, 2, 3, 4]
    assert own_cells.test_accuracy.std() > 0
    sys.path.insert(0, str(tmp_path))
    try:
        from mine import Mine
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("mine", None)
    done = routeyard.evaluate(
        release, {"mine": Mine}, seeds=5, resamples=100, embed=True, encoder="tfidf", cache=None
    )
    python = {r["metric"]: r["value"] for r in done.metrics.to_pylist() if r["router"] == "mine"}
    assert python["accuracy_seed_sd"] == spread["accuracy_seed_sd"]
    assert fits(tmp_path)[-5:] == [0, 1, 2, 3, 4]


def test_a_killed_evaluation_goes_on(release, tmp_path, mine) -> None:
    command = [sys.executable, "-m", "routeyard", "evaluate", str(release), "--out", "found"]
    command += [*EVALUATE, "--router-from", mine, "--seeds", "6"]
    running = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(ROOT), "MINE_SLEEPS": "4"},
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while len(fits(tmp_path)) < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    before = fits(tmp_path)
    assert before == [0, 1, 2, 3]
    assert not (tmp_path / "found" / "metrics.parquet").exists()
    assert run(command[3:]) == 0
    # At most the fit in flight is made again.
    again = fits(tmp_path)[len(before) :]
    assert again in ([4, 5], [3, 4, 5])
    # A file that is damaged is no prediction.
    for path in (tmp_path / "cache" / "predictions").glob("*.safetensors"):
        path.write_bytes(b"half of")
    assert run(command[3:]) == 0
    assert fits(tmp_path)[-6:] == [0, 1, 2, 3, 4, 5]


def test_the_settings_are_printed_and_the_only_list(release, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["evaluate", str(release), "--out", "found", "--router", "random", "--json"]
    assert run([*arguments, *EVALUATE, "--seeds", "42,7", "--bands", "0.1,0.2,0.3,0.4"]) == 0
    told = json.loads(capsys.readouterr().out)["settings"]
    assert set(told) == set(EvaluationSettings().to_json())
    assert told["scheme"] == "dense"
    assert told["seeds"] == [42, 7]
    assert told["bands"]["low"] == 0.3
    done = routeyard.evaluate(
        release, ["random"], EvaluationSettings(resamples=100), cache=None, seeds=(42, 7)
    )
    assert done.settings == EvaluationSettings(resamples=100, seeds=(42, 7), scheme="dense")
    assert hash(done.settings) == hash(done.settings.but())
    with pytest.raises(TypeError, match="sedes"):
        routeyard.evaluate(release, ["random"], cache=None, sedes=5)
    for seeds in ("0", "", "1,1", "-2", "many"):
        with pytest.raises(BadInput, match="seed"):
            EvaluationSettings(seeds=seeds)  # type: ignore[arg-type]


def test_the_code_that_a_fit_loads_is_in_the_hash_of_fits() -> None:
    # What is hashed is whole packages: a fit that loads code of another one would be read
    # although it is no longer what that code gives.
    load = (
        "import sys; from routeyard.pipelines.evaluate import fit; "
        "from routeyard.pipelines.routers import PAIR_ROUTERS, ROUTERS; "
        "[ROUTERS.get(name) for name in ROUTERS.builtin]; "
        "[PAIR_ROUTERS.get(name) for name in PAIR_ROUTERS.builtin]; "
        "print(*(name for name in sys.modules if name.startswith('routeyard.')))"
    )
    done = subprocess.run([sys.executable, "-c", load], capture_output=True, text=True, check=True)
    loaded = [Path(*name.split(".")[1:]) for name in done.stdout.split()]
    hashed = {file.with_suffix("") for file in files_of_fits()}
    packages = {file.parent for file in hashed if file.name == "__init__"}
    above = {Path("pipelines")}  # an empty package
    assert set(loaded) - hashed - packages - above == set()


def test_a_helper_file_of_a_router_is_part_of_its_code(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "helped.py").write_text("import helper\nclass Mine:\n" + MINE.split("Mine:\n")[1])
    (tmp_path / "helper.py").write_text("X = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    spec = own(f"{tmp_path / 'helped.py'}:Mine")
    (first,) = store_in(tmp_path, [spec]).code.values()
    (tmp_path / "helper.py").write_text("X = 2\n")
    (second,) = store_in(tmp_path, [spec]).code.values()
    assert first != second


def test_a_prediction_is_kept_once_for_its_router_seed_examples_and_questions(
    release, tmp_path
) -> None:
    core = core_of(read_release(release))
    train, test = core.training("dense"), core.take(core.rows("dense", "test"))
    specs = {spec.name: spec for spec in registered(["task-map", "random", "best-generalist"])}
    store = store_in(tmp_path, specs.values())
    one = Experiment(train, specs, (0, 1), store)
    drawn, again = (one.scores("random", test.queries(), repeat) for repeat in (0, 1))
    assert not np.array_equal(drawn, again)
    expected = BestGeneralist()
    expected.fit(train)
    for repeat in (0, 1):
        one.scores("task-map", test.queries(), repeat)
        shown = one.scores("best-generalist", test.queries(), repeat)
        np.testing.assert_array_equal(shown, expected.scores(test.queries()))
    # Routers without chance and without a seed are fitted once for all seeds.
    assert len(list((tmp_path / "predictions").glob("*.json"))) == 4
    # A question or a label that differs is another prediction.
    other, fewer = Experiment(train, specs, (0, 1), store), np.arange(test.n_queries - 1)
    name = one.fit_of("task-map").name(test.queries())
    assert other.fit_of("task-map").name(test.queries()) == name
    assert other.fit_of("task-map").name(test.take(fewer).queries()) != name
    part = train.take(np.arange(len(train.queries) - 1))
    assert Experiment(part, specs, (0,), store).fit_of("task-map").name(test.queries()) != name
