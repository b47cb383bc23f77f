"""A bundle read back by the importer of the same layout gives the same labels."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from routeyard.datacards.card import render
from routeyard.pipelines.common.errors import BadInput, UnknownName
from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.ingest.importers.write import run_import
from routeyard.pipelines.release.build import write_release
from routeyard.pipelines.release.exporters import EXPORTERS
from routeyard.pipelines.release.exporters.router_tables import export
from routeyard.pipelines.release.reader import open_release
from routeyard.schemas import LABELS, QUERIES, RESPONSES
from tests.support import small_release as small

#: Layouts that hold every score to the last digit; the others hold 0 and 1.
EXACT = ("llmrouterbench", "routerarena", "sprout", "ulab")
LAYOUTS = ("embedllm", "llmrouterbench", "routellm", "routerarena", "sprout", "ulab")
OPTIONS = {"routellm": {"strong": "m0", "weak": "m1"}}


def test_every_exporter_is_listed():
    folder = Path(__file__).parents[2] / "pipelines/release/exporters"
    defined = {p.stem for p in folder.glob("[!_]*.py") if "EXPORTER = Exporter(" in p.read_text()}
    listed = {target.partition(":")[0].rpartition(".")[2] for target in EXPORTERS.builtin.values()}
    assert defined == listed
    assert all(EXPORTERS.get(name).name == name for name in EXPORTERS.names())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_round_trip(release, tmp_path, layout):
    with open_release(release) as opened:
        done = export(EXPORTERS.get(layout), opened, tmp_path / "b", OPTIONS.get(layout, {}))
        labels = opened.sql(
            "SELECT prompt, model_id, score FROM labels JOIN queries USING (query_id)"
        ).to_pylist()
    assert all((tmp_path / "b" / name).is_file() for name in done.files)
    found = read_back(layout, tmp_path)
    models = {"m0", "m1"} if layout == "routellm" else {"m0", "m1", "m2"}
    expected = {(r["prompt"], r["model_id"]): r["score"] for r in labels if r["model_id"] in models}
    assert found == expected
    assert done.rows == len(expected)


@pytest.fixture(scope="module")
def with_nulls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with scores of many digits, one pair without label, and answers without texts."""
    tables = small.tiny_tables()
    labels, responses = tables["labels"].to_pylist(), tables["responses"].to_pylist()
    for n, row in enumerate(labels):
        row["score"] = (n % 7) / 7
        row["correct"] = row["score"] >= 0.5
    gone = labels.pop(4)
    for n, row in enumerate(responses):
        if n % 5 == 0:
            row["text"], row["given_score"] = None, 0.5
        if row["model_id"] == "m1":
            row["cost_usd"], row["cost_source"] = None, None
        if row["model_id"] == "m2":
            row["latency_s"] = None
    kept = [r for r in responses if (r["query_id"], r["model_id"]) != (
        gone["query_id"], gone["model_id"])]  # fmt: skip
    changed = {"labels": LABELS.from_rows(labels), "responses": RESPONSES.from_rows(kept)}
    root = tmp_path_factory.mktemp("nulls")
    given = {**tables, **changed}
    return write_release(given, recipe=small.RECIPE, root=root, render_card=render).path


@pytest.mark.parametrize("layout", EXACT)
def test_accuracies_come_back_to_the_last_digit_nulls_included(with_nulls, tmp_path, layout):
    with open_release(with_nulls) as opened:
        done = export(EXPORTERS.get(layout), opened, tmp_path / "b", {})
        labels = opened.sql(
            "SELECT prompt, model_id, score FROM labels JOIN queries USING (query_id)"
        ).to_pylist()
    found = read_back(layout, tmp_path)
    models = {"m0", "m2"} if layout == "llmrouterbench" else {"m0", "m1", "m2"}
    expected = {(r["prompt"], r["model_id"]): r["score"] for r in labels if r["model_id"] in models}
    assert found == expected
    if layout == "llmrouterbench":  # its loader adds costs up, and fails at a null
        assert "runs without all costs and tokens (files left out)" in done.dropped
        runs = [json.loads((tmp_path / "b" / name).read_text()) for name in done.files]
        # A time that nobody took is not 0 seconds; the loader reads none.
        assert {run["model_name"] for run in runs if "time_taken" in run} == {"m0"}


def read_back(layout: str, folder: Path) -> dict[tuple[str, str], float]:
    """(prompt, model) → score, by our own importer of the layout."""
    back = run_import(IMPORTERS.get(layout), folder / "b", folder / "imports" / layout)
    questions = pq.read_table(back.folder / "queries.parquet").to_pylist()
    prompts = {q["id"]: q["prompt"] for q in questions}
    answers = pq.read_table(back.folder / "responses.parquet").to_pylist()
    return {(prompts[a["query"]], a["model"]): a["score"] for a in answers}


def test_cached_results_of_routerarena_are_read_without_a_recipe(with_nulls, tmp_path):
    from routeyard.pipelines.ingest.results import read_results

    with open_release(with_nulls) as opened:
        export(EXPORTERS.get("routerarena"), opened, tmp_path / "b", {})
        means = opened.sql("SELECT model_id, avg(score) AS mean FROM labels GROUP BY 1").to_pylist()
    found = read_results(tmp_path / "b" / "cached_results").table
    by_arm = found.group_by("arm").aggregate([("score", "mean")]).to_pylist()
    got = {row["arm"]: row["score_mean"] for row in by_arm}
    assert got == pytest.approx({row["model_id"]: row["mean"] for row in means}, abs=1e-15)


#: Runs the peer's own loader and trainer; what it imports besides and needs for neither is absent.
_ULAB = """
import importlib.abc, importlib.machinery, sys

# What the package asks for, and neither its loader nor this trainer uses.
ABSENT = {"PIL", "bert_score", "fastapi", "gradio", "litellm", "openai", "peft", "sentencepiece",
          "torch_geometric", "uvicorn", "vllm", "websockets", "nltk", "ray", "wandb"}
from unittest.mock import MagicMock

class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__ = [], spec
        return module
    def exec_module(self, module): pass

sys.path.insert(0, sys.argv[1])
sys.meta_path.append(Absent())
from llmrouter.models.knnrouter.router import KNNRouter
from llmrouter.models.knnrouter.trainer import KNNRouterTrainer
router = KNNRouter(sys.argv[2])
KNNRouterTrainer(router).train()
means = router.routing_data_train.groupby("model_name")["performance"].mean()
print("MEANS", means.to_json(double_precision=15), len(router.llm_data))
"""


def installed(package: str, folder: Path) -> Path:
    """The peer's package from the index, without what it depends on."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
    done = subprocess.run([*command, package], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"the package index does not have {package}: {done.stderr[-200:]}")
    return folder


@pytest.mark.slow
def test_ulabs_own_trainer_runs_on_the_bundle(with_nulls, tmp_path):
    peer = installed("llmrouter-lib==0.4.0", tmp_path / "peer")
    with open_release(with_nulls) as opened:
        export(EXPORTERS.get("ulab"), opened, tmp_path / "b", {})
        means = opened.sql(
            "SELECT model_id, avg(score) AS mean FROM labels JOIN splits USING (query_id) "
            "WHERE split = 'train' GROUP BY 1"
        ).to_pylist()
    command = [sys.executable, "-c", _ULAB, str(peer), str(tmp_path / "b" / "router.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    said = done.stdout[done.stdout.index("MEANS") :].split(" ", 3)
    assert json.loads(said[1]) == pytest.approx(
        {r["model_id"]: r["mean"] for r in means}, abs=1e-14
    )
    assert (tmp_path / "b" / "knn_model.pkl").is_file()


@pytest.mark.slow
def test_routellms_own_reader_gives_our_accuracies(release, tmp_path):
    peer = installed("routellm==0.2.0", tmp_path / "peer")
    with open_release(release) as opened:
        done = export(EXPORTERS.get("routellm"), opened, tmp_path / "b", OPTIONS["routellm"])
        means = opened.sql(
            "SELECT model_id, avg(correct::INT) AS mean FROM labels WHERE model_id IN ('m0', 'm1') "
            "GROUP BY 1"
        ).to_pylist()
    home = tmp_path / "home" / "mmlu"
    (home / "responses").mkdir(parents=True)
    names = [name for name in done.files if name.endswith(".csv")]
    for name in names:
        (tmp_path / "b" / name).rename(home / "responses" / name)
    (home / "contaminated_prompts.jsonl").write_text('{"eval_prompt": "none of ours"}\n')
    program = (
        "import importlib.util, json, sys\n"
        "from unittest.mock import MagicMock\n"
        # Its reader imports its routers for their types alone.
        "for name in ('routellm', 'routellm.controller', 'routellm.routers', "
        "'routellm.routers.routers'): sys.modules[name] = MagicMock()\n"
        "spec = importlib.util.spec_from_file_location('peer', sys.argv[2])\n"
        "peer = importlib.util.module_from_spec(spec); spec.loader.exec_module(peer)\n"
        "peer.CURRENT_DIR = sys.argv[3]\n"
        "pair = type('Pair', (), {'strong': 'm0', 'weak': 'm1'})\n"
        "read = peer.MMLU(json.loads(sys.argv[4]), pair, [])\n"
        "print('MEANS', read.get_model_accuracy('m0'), read.get_model_accuracy('m1'))\n"
    )
    domains = [name.removeprefix("mmlu_").removesuffix(".csv") for name in names]
    command = [sys.executable, "-c", program, str(peer), str(peer / "routellm/evals/benchmarks.py"),
               str(home.parent), json.dumps(domains)]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr[-3000:]
    strong, weak = map(float, ran.stdout[ran.stdout.index("MEANS") :].split()[1:3])
    by_model = {row["model_id"]: row["mean"] for row in means}
    assert (strong, weak) == pytest.approx((100 * by_model["m0"], 100 * by_model["m1"]), abs=1e-9)


def test_a_task_name_cannot_leave_the_folder(write, tables, tmp_path):
    rows = tables["queries"].to_pylist()
    for row in rows:
        row["task"] = "../../escaped/" + row["task"]
    path = write({**tables, "queries": QUERIES.from_rows(rows)}).path
    with open_release(path) as opened:
        for layout in EXPORTERS.names():
            target = tmp_path / "deep" / "er" / layout
            export(EXPORTERS.get(layout), opened, target, OPTIONS.get(layout, {}))
    assert not list(tmp_path.glob("**/escaped*"))


def test_bad_options_are_named(release, tmp_path):
    with open_release(release) as opened:
        with pytest.raises(BadInput, match="no strong one"):
            export(EXPORTERS.get("routellm"), opened, tmp_path / "a", {})
        with pytest.raises(UnknownName, match="no model 'm9'"):
            export(
                EXPORTERS.get("routellm"), opened, tmp_path / "a", {"strong": "m9", "weak": "m1"}
            )
        with pytest.raises(BadInput, match="no option"):
            export(EXPORTERS.get("ulab"), opened, tmp_path / "a", {"strong": "m1"})
        assert not (tmp_path / "a").exists()
        (tmp_path / "a").mkdir()
        with pytest.raises(BadInput, match="exists already"):
            export(EXPORTERS.get("ulab"), opened, tmp_path / "a", {})
