"""`routeyard zoo` and `zoo run` on a release on disk."""

from __future__ import annotations

import importlib
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
from safetensors.numpy import load_file, save_file

import routeyard
from routeyard.flows.cli import run
from routeyard.flows.cli.routers import route_lines
from routeyard.pipelines.evaluate.metrics.single import arena_score
from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.ingest.importers.reading import ImportResult
from routeyard.pipelines.routers import ROUTERS
from tests.support.worded_release import worded_release

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return worded_release(tmp_path_factory.mktemp("release") / "toy" / "1.0.0")


def test_list_and_show_say_what_each_router_is(capsys) -> None:
    assert run(["zoo", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    names = {row["name"] for row in rows}
    asked = (
        "knn kmeans mlp embedllm zooter eagle avengers-pro equirouter mess-plus carrot cp-router "
        "p2l model-spider rorf tag-router fly-swat linucb routerdc mirt nirt hybrid-llm optllm "
        "ridge logistic task-map graph-router routellm-sw routellm-mf routellm-bert"
    )
    assert set(asked.split()) <= names
    assert all(len(row["architectures"]) <= 15 for row in rows)
    assert run(["zoo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    # Long cells used to push the columns after them out of line.
    at = {line.index("  needs ") for line in lines}
    assert len(at) == 1
    (start,) = at
    known = [(line, row["cost"]) for line, row in zip(lines, rows, strict=True) if row["cost"]]
    assert len({line.index(cost, start + 8) for line, cost in known}) == 1
    assert run(["zoo", "routerdc"]) == 0
    assert "2409.19886" in capsys.readouterr().out
    assert run(["zoo", "routerdb"]) == 2
    assert "did you mean 'routerdc'" in capsys.readouterr().err


@pytest.fixture
def installed(tmp_path, monkeypatch) -> Path:
    """Another package with a router, as an installer leaves it; the file of the router."""
    site = tmp_path / "site"
    about = site / "theirs-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[routeyard.routers]\nby-entry = their_router:Always\n")
    (site / "their_router.py").write_text(
        "import numpy as np\n"
        "class Always:\n"
        "    name = 'by-entry'\n"
        "    def fit(self, train): self.m = len(train.model_ids)\n"
        "    def scores(self, queries): return np.tile(np.arange(self.m), (len(queries), 1))\n"
    )
    monkeypatch.syspath_prepend(site)
    # What is registered is looked up once.
    vars(ROUTERS).pop("targets", None)
    yield site / "their_router.py"
    vars(ROUTERS).pop("targets", None)
    sys.modules.pop("their_router", None)


def test_another_packages_router_joins_and_its_change_is_seen(release, tmp_path, installed) -> None:
    out = tmp_path / "out"
    command = ["zoo", "run", str(release), "--routers", "by-entry,best-generalist", "--no-report"]
    command += ["--encoders", "tfidf", "--out", str(out)]
    assert run(command) == 0
    first = pq.read_table(out / "cells.parquet").to_pandas().set_index("router").test_accuracy
    assert set(first.index) == {"by-entry", "best-generalist"}
    installed.write_text(installed.read_text().replace("np.arange(self.m)", "-np.arange(self.m)"))
    sys.modules.pop("their_router")
    importlib.invalidate_caches()
    assert run(command) == 0
    second = pq.read_table(out / "cells.parquet").to_pandas().set_index("router").test_accuracy
    assert second["by-entry"] != first["by-entry"]
    assert second["best-generalist"] == first["best-generalist"]


def test_run_makes_embeddings_and_writes_cells_and_table(release, tmp_path, capsys) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import numpy as np\n"
        "class Mine:\n"
        "    name = 'mine'\n"
        "    def fit(self, train):\n"
        "        self.mean = np.nanmean(train.labels, axis=0)\n"
        "        # A router that reads words ended here with an index out of bounds.\n"
        "        self.length = len(train.queries.prompts[0]) / len(train.queries.questions[0])\n"
        "    def scores(self, queries):\n"
        "        assert len(queries.prompts) == len(queries.questions) == len(queries)\n"
        "        return np.tile(self.mean, (len(queries), 1))\n"
    )
    ids = pq.read_table(release / "data" / "queries.parquet").column("query_id").to_pylist()
    table = tmp_path / "theirs.csv"
    table.write_text("query_id,model_id\n" + "".join(f"{q},left\n" for q in ids))
    out = tmp_path / "out"
    arguments = ["zoo", "run", str(release), "--routers", "knn,ridge,linucb,task-map"]
    arguments += ["--encoders", "tfidf", "--out", str(out), "--resamples", "100"]
    arguments += ["--own", f"{mine}:Mine", "--own", str(table)]
    assert run(arguments) == 0
    cells = pq.read_table(out / "cells.parquet").to_pandas()
    wanted = ["router", "encoder", "architecture", "seed", "stage", "val_accuracy"]
    wanted += ["test_accuracy", "fit_s", "peak_mb"]
    assert set(wanted) <= set(cells.columns)
    assert set(cells.router) == {"knn", "ridge", "linucb", "task-map", "mine", "theirs"}
    assert cells[wanted].notna().all().all()
    # Without chance there is no second stage; with it the finalists get four more seeds.
    assert set(cells[cells.router == "knn"].stage) == {1}
    later = cells[(cells.router == "linucb") & (cells.stage == 2)]
    assert set(later.seed) == {1337, 2026, 7, 99}
    # The words tell the kinds apart: routers find it, the mean over models does not.
    best = cells.groupby("router").test_accuracy.max()
    assert best["ridge"] > best["mine"] + 0.2
    page = (out / "table.md").read_text()
    assert "| ridge |" in page
    assert "Spread of the top five rows of this table" in page
    assert (out / "tfidf" / "report.html").is_file()
    # A second run fits nothing: the records are what it reads.
    stamps = {p.name: p.stat().st_mtime_ns for p in (out / "cells").glob("*.json")}
    assert run([*arguments, "--no-report"]) == 0
    assert {p.name: p.stat().st_mtime_ns for p in (out / "cells").glob("*.json")} == stamps
    assert pq.read_table(out / "cells.parquet").to_pandas().equals(cells)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_threads_and_dask_give_equal_figures(release, tmp_path) -> None:
    found, figures = [], []
    for runner in ("threads", "dask"):
        # Neither reads what the other keeps.
        out = tmp_path / runner
        command = [sys.executable, "-m", "routeyard", "zoo", "run", str(release), "--no-report"]
        command += ["--routers", "mf,linucb,ridge,random,routerdc", "--encoders", "tfidf"]
        command += ["--out", str(out), "--cache", str(out / "cache")]
        done = subprocess.run(
            [*command, "--runner", runner], cwd=tmp_path, capture_output=True, text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        table = pq.read_table(out / "cells.parquet").to_pandas()
        found.append(table.drop(columns=["fit_s", "cpu_s", "peak_mb"]))
        standings = json.loads((out / "standings.json").read_text())
        figures.append([(s["mean"], s["sd"], s["over_splits"]) for s in standings])
    assert len(found[0]) > 20
    assert found[0].equals(found[1])
    assert figures[0] == figures[1]
    assert [len(over) for _, _, over in figures[0]] == [5] * 5


def test_a_kill_costs_the_cells_in_flight_and_no_more(release, tmp_path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "routeyard", "zoo", "run", str(release), "--no-report"]
    command += ["--routers", "knn,carrot,linucb", "--encoders", "tfidf", "--out", str(out)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    running = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    cells, deadline = out / "cells", time.monotonic() + 120
    while len(list(cells.glob("*.json"))) < 12 and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.wait()
    before = {path.name: path.stat().st_mtime_ns for path in cells.glob("*.json")}
    assert len(before) >= 12
    assert not (out / "table.md").exists()
    assert run(command[3:]) == 0
    after = {path.name: path.stat().st_mtime_ns for path in cells.glob("*.json")}
    assert {name: after[name] for name in before} == before
    table = pq.read_table(out / "cells.parquet")
    assert table.num_rows == len(after) > len(before)


def test_a_tie_of_models_is_told_as_one() -> None:
    result = {"router": "knn", "encoder": "tfidf", "rule": "argmax", "costs": None}
    result |= {"scores": {"a": 0.5, "b": 0.5, "c": 0.1}, "model_id": "a"}
    lines = list(route_lines(result))
    assert [line[:3] for line in lines[1:4]] == ["→ a", "  b", "  c"]
    assert lines[4:] == ["a tie: a, b have the same score"]
    assert not any("tie" in line for line in route_lines({**result, "model_id": "c"}))


def test_a_router_is_asked_saved_and_asked_again(release, tmp_path, capsys) -> None:
    question = "integral derivative limit number 5"
    asked = ["route", str(release), question, "--router", "ridge", "--json"]
    assert run([*asked, "--save", str(tmp_path / "mine")]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["model_id"] == "left"
    assert set(first["scores"]) == {"left", "right", "weak"}
    assert first["costs"]["unit"] == "USD per query"
    assert first["costs"]["mean"]["left"] == pytest.approx(0.001)
    assert run(["route", str(tmp_path / "mine"), question]) == 0
    words = capsys.readouterr().out.splitlines()
    assert words[0].startswith("ridge on tfidf, rule argmax; cost: USD per query")
    assert words[1].startswith("→ left")
    assert words[1].endswith("  0.001")
    assert run(["route", str(tmp_path / "mine"), question, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == first
    assert run(["route", str(tmp_path / "mine"), "river castle king", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model_id"] == "right"
    # With cost all that counts, the cheapest model is asked.
    assert run(["route", str(tmp_path / "mine"), "river king", "--json", "--weight", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["model_id"] == "left"
    # A budget that the right model alone breaks asks another; Python says the same.
    budget = "query-budget:0.0015"
    assert run(["route", str(tmp_path / "mine"), "river king", "--json", "--rule", budget]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["model_id"], found["rule"]) == ("left", budget)
    assert routeyard.route(tmp_path / "mine", "river king", rule=budget) == found
    assert run(["route", str(tmp_path / "mine"), "river", "--rule", "threshold:0.5"]) == 2
    assert "there is no rule 'threshold'" in capsys.readouterr().err
    # Arrays of a stranger fit neither each other nor the models: a traceback.
    for name, change in (("router", lambda a: a[..., :1]), ("tfidf", lambda a: a[:1])):
        path = tmp_path / "mine" / f"{name}.safetensors"
        kept = path.read_bytes()
        save_file({k: np.ascontiguousarray(change(v)) for k, v in load_file(path).items()}, path)
        assert run(["route", str(tmp_path / "mine"), question]) == 2
        assert "saved router" in capsys.readouterr().err
        path.write_bytes(kept)
    words = tmp_path / "mine" / "tfidf.json"
    words.write_text(words.read_text().replace('"river"', '"rivers"'))
    assert run(["route", str(tmp_path / "mine"), question]) == 2
    assert "not the one the router was fitted with" in capsys.readouterr().err


@pytest.mark.extensions
def test_a_stream_is_answered_in_five_orders(release, capsys) -> None:
    assert run(["zoo", "online", str(release), "--alpha", "0.6", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["questions"], found["measure"], len(found["seeds"])) == (50, "usd", 5)
    assert [row["name"] for row in found["rows"]] == ["mess-plus", "right", "left", "weak"]
    mine = found["rows"][0]
    # Asked all at once, a question costs 0.006 USD; the cheapest model alone, 0.001.
    assert 0.001 < mine["cost"] < 0.006
    assert mine["answered_well_sd"] > 0
    assert run(["zoo", "online", str(release), "--alpha", "2"]) == 2


def test_a_submission_is_audited(release, tmp_path, capsys) -> None:
    data = release / "data"
    labels = pq.read_table(data / "labels.parquet").to_pandas()
    splits = pq.read_table(data / "splits.parquet").to_pandas()
    test = set(splits[splits.split == "test"].query_id)
    wide = labels[labels.query_id.isin(test)].pivot(
        index="query_id", columns="model_id", values="score"
    )
    price = {"left": 0.001, "right": 0.002, "weak": 0.003}

    def findings(rows: list[str], head: str = "query_id,model_id") -> dict[str, str]:
        path = tmp_path / "submission.csv"
        path.write_text("\n".join([head, *rows]) + "\n")
        code = run(["audit", str(path), "--release", str(release), "--json"])
        listed = json.loads(capsys.readouterr().out)
        level = {"grave": "fail", "doubt": "warn"}
        found = {note.partition(":")[0]: "ok" for note in listed["notes"]}
        for one in listed["findings"]:
            name = one["kind"].removeprefix("submission:").replace("_", " ")
            assert name not in found  # each finding has a name of its own
            found[name] = level[one["severity"]]
        assert code == (3 if "fail" in found.values() else 0)
        return found

    honest = [f"{q},{('left', 'right')[k % 2]}" for k, q in enumerate(wide.index)]
    assert set(findings(honest).values()) == {"ok"}
    leaked = [f"{q},{next((m for m in price if row[m] > 0), 'left')}" for q, row in wide.iterrows()]
    assert findings(leaked)["label leak"] == "fail"
    assert findings([f"{q},weak" for q in wide.index])["constant choice"] == "warn"
    assert findings(honest[1:])["missing questions"] == "fail"
    assert findings([*honest, honest[0]])["repeated questions"] == "fail"
    assert findings([*honest[1:], honest[0].split(",")[0] + ",other"])["models"] == "fail"
    more = "query_id,model_id,cost,tokens"
    good = [f"{row},{price[row.split(',')[1]]},{k}" for k, row in enumerate(honest)]
    assert set(findings(good, more).values()) == {"ok"}
    cheap = [f"{row},{price[row.split(',')[1]] / 10},7" for row in honest]
    found = findings(cheap, more)
    assert found["prices"] == "fail"
    # What passes can be written as RouterArena takes it; the score is the formula's.
    path, out = tmp_path / "honest.csv", tmp_path / "arena.json"
    path.write_text("\n".join(["query_id,model_id", *honest]) + "\n")
    assert run(["audit", str(path), "--release", str(release), "--arena", str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["notes"][-1]
    sent = json.loads(out.read_text())
    hit = [wide.loc[q, row.split(",")[1]] for q, row in zip(wide.index, honest, strict=True)]
    usd = [price[row.split(",")[1]] for row in honest]
    assert f"score {float(arena_score(np.mean(hit), 1000 * np.mean(usd))):.6f}" in said
    assert [one["accuracy"] for one in sent] == hit
    # RouterArena's own importer reads it.
    answers = IMPORTERS.get("routerarena").read([out], ImportResult(out))
    assert len(list(answers)) == len(wide)
    # What fails is not written.
    failing = tmp_path / "none.json"
    path.write_text("\n".join(["query_id,model_id", *leaked]) + "\n")
    assert run(["audit", str(path), "--release", str(release), "--arena", str(failing)]) == 3
    assert not failing.exists()
    capsys.readouterr()
    assert findings(["x,left"])["choices"] == "fail"
    assert findings(honest, "id,model") == {"columns": "fail", "unread columns": "warn"}
