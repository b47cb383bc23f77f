"""`routeyard evaluate`, `certify` and `leaderboard` on a release on disk."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.flows.cli import run
from routeyard.flows.evaluation.evaluate import from_code
from routeyard.pipelines.common.errors import BadInput
from routeyard.schemas import CONTRACTS
from tests.support.contract_tables import write_tables


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 questions of two tasks, a model for each; only what an evaluation needs."""
    folder = tmp_path_factory.mktemp("release") / "toy" / "1.0.0"
    rng = np.random.default_rng(0)
    n = 120
    ids = [f"q{i:020x}" for i in range(n)]
    task = rng.integers(0, 2, n)
    vectors = np.stack([1.0 - task, task, 0.1 * rng.random(n)], axis=1)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cells = [(i, k) for i in range(n) for k in range(2)]
    right = [bool((task[i] == k) ^ (rng.random() < 0.1)) for i, k in cells]
    names = ("left", "right")
    base = {"query_id": [ids[i] for i, _ in cells], "model_id": [names[k] for _, k in cells]}
    tables = {
        "queries": {
            "query_id": ids,
            "source": ["toy"] * n,
            "source_id": [str(i) for i in range(n)],
            "task": [f"task-{t}" for t in task],
            "domain": ["toy"] * n,
            "question": [f"question {i}" for i in range(n)],
            "prompt": [f"question {i}?" for i in range(n)],
            "choices": [[]] * n,
            "references": [["1"]] * n,
            "scorer": ["numeric"] * n,
            "metadata": ["{}"] * n,
        },
        "models": {"model_id": names, "kind": ["real"] * 2, "simulated": [True] * 2},
        "labels": {
            **base,
            "score": [float(r) for r in right],
            "correct": right,
            "decided_by": ["numeric"] * len(cells),
            "contested": [False] * len(cells),
            "n_samples": [1] * len(cells),
        },
        "responses": {
            **base,
            "sample": [0] * len(cells),
            "text": [f"answer {r}" for r in right],
            "status": ["ok"] * len(cells),
            "attempts": [1] * len(cells),
            "cost_usd": [0.001 * (k + 1) for _, k in cells],
            "cost_source": ["provider"] * len(cells),
        },
        "splits": {
            "scheme": ["dense"] * n,
            "query_id": ids,
            "split": [("train", "test", "validation", "test")[i % 4] for i in range(n)],
        },
        "embeddings": {"query_id": ids, "encoder": ["toy"] * n, "vector": vectors.tolist()},
    }
    return write_tables(folder, tables)


def content(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.extensions
def test_evaluate_writes_its_files_and_leaves_the_release_alone(release, tmp_path, capsys) -> None:
    before = content(release)
    predictions = tmp_path / "mine.csv"
    ids = pq.read_table(release / "data" / "queries.parquet").column("query_id").to_pylist()
    predictions.write_text("query_id,model_id\n" + "".join(f"{q},left\n" for q in ids))
    arguments = ["evaluate", str(release), "--router", "knn", "--resamples", "100"]
    for name in ("one", "two"):
        done = run([*arguments, "--out", str(tmp_path / name), "--predictions", str(predictions)])
        assert done == 0
    out = tmp_path / "one"
    metrics = pq.read_table(out / "metrics.parquet")
    assert metrics.schema.names[:6] == ["router", "metric", "split", "value", "low", "high"]
    found = {(r["router"], r["metric"]): r["value"] for r in metrics.to_pylist()}
    assert found["knn", "accuracy"] > 0.75 > found["mine", "accuracy"]
    assert found["pair-knn[labels]", "auroc"] > 0.7
    for name in (
        "curves.parquet",
        "comparisons.parquet",
        "certificate.json",
        "report.html",
        "deferral_usd.png",
        "deferral_usd.svg",
        "tradeoff.svg",
        "selection.png",
    ):
        assert (out / name).stat().st_size > 0
    assert json.loads((out / "certificate.json").read_text())["verdict"] == "routable"
    assert content(release) == before
    # The same release and options: the same bytes.
    assert content(out) == content(tmp_path / "two")
    assert "knn" in capsys.readouterr().out
    assert run(["leaderboard", str(out), str(tmp_path / "two"), "--metric", "audc[usd]"]) == 0
    assert run(["leaderboard", str(out), "--metric", "audc"]) == 2
    # Results of two releases stood in one table as if they could be compared.
    for name, version in (("one", "1.0.0"), ("two", "2.0.0")):
        told = json.loads((tmp_path / name / "evaluation.json").read_text())
        told["release"] = {"name": "toy", "version": version, "fingerprint": ""}
        (tmp_path / name / "evaluation.json").write_text(json.dumps(told))
    capsys.readouterr()
    assert run(["leaderboard", str(out), str(tmp_path / "two")]) == 0
    said = capsys.readouterr()
    assert {"one toy 1.0.0", "two toy 2.0.0"} <= {
        " ".join(line.split()[:3]) for line in said.out.splitlines()
    }
    assert "cannot be compared with each other" in " ".join(said.err.split())
    assert run(["leaderboard", str(out)]) == 0
    assert "cannot be compared" not in capsys.readouterr().err


def test_groups_bands_and_binary_rules_by_option(release, tmp_path, capsys, request) -> None:
    out = tmp_path / "out"
    arguments = ["evaluate", str(release), "--out", str(out), "--router", "task-map",
                 "--resamples", "100", "--no-certificate"]  # fmt: skip
    held = ["--ood-group", "first=TASK-0", "--ood-group", "toys=task-?,source-of-*"]
    # A group of every question leaves nothing to train on.
    assert run([*arguments, *held]) == 2
    assert "holds every question" in capsys.readouterr().err
    assert run([*arguments, "--ood-group", "stem"]) == 2
    assert "'stem'" in capsys.readouterr().err
    assert run([*arguments, "--ood-group", "=task-0"]) == 2
    assert "is no group of tasks" in capsys.readouterr().err
    # All options at once: each is read where it belongs, and leaves the others alone.
    pair = ["--router", "knn", "--pair", "left,right"]

    def values(*more: str) -> dict[str, float]:
        assert run([*arguments, *pair, *more]) == 0
        found = pq.read_table(out / "metrics.parquet").to_pylist()
        return {r["metric"]: r["value"] for r in found if r["router"] == "knn"}

    default = values(*held[:2])
    request.getfixturevalue("without_pages")
    rows = {r["group"]: r for r in pq.read_table(out / "ood.parquet").to_pylist()}
    # By category, and the other way round: trained on the group, tested on the rest.
    assert {"first", "first/task-0", "not first"} <= set(rows)
    assert rows["first"]["n"] + rows["not first"]["n"] == 60
    assert rows["first"]["change"] < 0
    assert rows["not first"]["change"] < 0
    assert rows["first"]["id_accuracy"] - rows["first"]["ood_accuracy"] == pytest.approx(
        -rows["first"]["change"]
    )
    other = values("--bands", "0.6,0.6,0.5,0.99", "--binary-by", "difference")
    assert default["accuracy"] == other["accuracy"]
    for name in ("lpm", "hcr", "auroc"):
        assert default[name] != other[name], name
    assert run([*arguments, "--binary-by", "both"]) == 2


def test_certify_writes_json_and_its_gate_exits_3(release, tmp_path) -> None:
    assert run(["certify", str(release), "--out", str(tmp_path), "--resamples", "200"]) == 0
    found = json.loads((tmp_path / "certificate.json").read_text())
    assert found["figures"]["query_oracle"]["low"] > 0.8
    flat = tmp_path / "flat" / "1.0.0"
    (flat / "data").mkdir(parents=True)
    for path in (release / "data").iterdir():
        table = pq.read_table(path)
        if path.stem == "labels":
            size = table.num_rows
            table = table.set_column(2, table.field("score"), pa.array([1.0] * size))
            table = table.set_column(3, table.field("correct"), pa.array([True] * size))
        pq.write_table(table, flat / "data" / path.name)
    arguments = ["certify", str(flat), "--out", str(tmp_path / "c"), "--resamples", "200"]
    assert run(arguments) == 0
    assert run([*arguments, "--gate"]) == 3


@pytest.mark.usefixtures("without_pages")
def test_a_router_in_twenty_lines_of_python(release, tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "my_router.py").write_text(
        "import numpy as np\n"
        "class Mine:\n"
        "    name = 'mine'\n"
        "    def fit(self, train):\n"
        "        self.best = {t: np.nanmean(train.labels[train.queries.tasks == t], axis=0)\n"
        "                     for t in set(train.queries.tasks)}\n"
        "    def scores(self, queries):\n"
        "        assert not hasattr(queries, 'labels')\n"
        "        return np.array([self.best[t] for t in queries.tasks])\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    out = tmp_path / "out"
    arguments = ["evaluate", str(release), "--out", str(out), "--only-given", "--resamples", "100"]
    # A router that is named is given, whatever else is left out.
    given = ["--router-from", "my_router:Mine", "--router", "random"]
    assert run([*arguments, *given, "--no-certificate"]) == 0
    rows = pq.read_table(out / "metrics.parquet").to_pylist()
    gain = next(r for r in rows if (r["router"], r["metric"]) == ("mine", "gain_over_best_single"))
    assert gain["low"] > 0
    routers = {row["router"] for row in rows}
    assert "random" in routers
    assert "best-generalist" not in routers
    assert run([*arguments, "--router-from", "my_router:Other"]) == 2
    # Results go by the name: no router takes the place of another.
    text = (tmp_path / "my_router.py").read_text()
    (tmp_path / "clash.py").write_text(text.replace("name = 'mine'", "name = 'random'"))
    assert run([*arguments, "--router", "random", "--router-from", "clash.py:Mine"]) == 2
    assert "two routers are called 'random'" in capsys.readouterr().err
    assert run([*arguments, "--router-from", "my_router"]) == 2
    # A file is named as for `zoo run --own`.
    spec = from_code(f"{tmp_path / 'my_router.py'}:Mine")
    assert (spec.name, spec(0).name) == ("mine", "mine")
    with pytest.raises(BadInput, match="cannot be imported"):
        from_code(f"{tmp_path / 'another.py'}:Mine")


def _with_preferences(release: Path, folder: Path, bases: tuple[str, ...]) -> Path:
    """The release again, `left` and `right` judged on every question on each basis."""
    (folder / "data").mkdir(parents=True)
    for path in (release / "data").iterdir():
        (folder / "data" / path.name).write_bytes(path.read_bytes())
    queries = pq.read_table(release / "data" / "queries.parquet").to_pylist()
    rows = [
        {
            "id": f"{basis}-{i}", "query_id": q["query_id"], "model_a": "left", "model_b": "right",
            "prompt": q["prompt"], "winner_model_a": int(q["task"] == "task-0"),
            "winner_model_b": int(q["task"] == "task-1"), "winner_tie": 0, "basis": basis,
            "n_turns": 1,
        }
        for basis in bases
        for i, q in enumerate(queries)
    ]  # fmt: skip
    table = CONTRACTS["preferences"].from_rows(rows)
    pq.write_table(table, folder / "data" / "preferences.parquet")
    return folder


@pytest.mark.usefixtures("without_pages")
def test_a_basis_is_chosen_by_name_and_shown(release, tmp_path, capsys) -> None:
    both = _with_preferences(
        release, tmp_path / "both" / "1.0.0", ("correctness", "semantic_entropy")
    )
    arguments = ["evaluate", str(both), "--router", "best-generalist", "--no-certificate"]
    arguments += ["--resamples", "100", "--out"]
    assert run([*arguments, str(tmp_path / "x")]) == 2
    assert "2 bases" in capsys.readouterr().err
    assert run([*arguments, str(tmp_path / "x"), "--basis", "judge:j"]) == 2
    assert run([*arguments, str(tmp_path / "x"), "--basis", "correctness"]) == 0
    names = set(pq.read_table(tmp_path / "x" / "metrics.parquet").column("router").to_pylist())
    assert "pair-knn[correctness]" in names
    assert not [name for name in names if "semantic_entropy" in name or "[labels]" in name]


@pytest.mark.usefixtures("without_pages")
def test_bands_and_picks_are_options(release, tmp_path, capsys) -> None:
    ids = pq.read_table(release / "data" / "queries.parquet").column("query_id").to_pylist()
    tested = [q for i, q in enumerate(ids) if i % 4 in (1, 3)]
    picks = tmp_path / "picks.csv"
    half = len(tested) // 2
    named = [(q, "best-generalist") for q in tested[:half]] + [(q, "x") for q in tested[half:]]
    picks.write_text("query_id,router\n" + "".join(f"{q},{r}\n" for q, r in named))
    arguments = ["evaluate", str(release), "--router", "best-generalist", "--no-certificate"]
    arguments += ["--resamples", "100"]
    assert run([*arguments, "--out", str(tmp_path / "a"), "--picks", str(picks)]) == 0
    bands = ["--bands", "0.5,0.5,0.2,0.6", "--usd-per-hour", "3.6"]
    assert run([*arguments, "--out", str(tmp_path / "b"), *bands]) == 0
    shown = [
        {
            (r["router"], r["metric"]): r["value"]
            for r in pq.read_table(tmp_path / name / "metrics.parquet").to_pylist()
        }
        for name in ("a", "b")
    ]
    judged = shown[0]["best-generalist", "answer_quality"]
    assert judged == pytest.approx(100 * half / len(tested))
    assert shown[1].get(("best-generalist", "answer_quality")) is None
    asked = ("pair-knn[labels]", "lpm")
    assert shown[0][asked] != pytest.approx(shown[1][asked], abs=1e-6)
    # Nobody asked for seconds, so the first run has none and its bytes can be had again.
    assert shown[0].get(("best-generalist", "decision_time")) is None
    milliseconds = shown[1]["best-generalist", "decision_time"]
    assert shown[1]["best-generalist", "decision_cost"] == pytest.approx(milliseconds / 1000)
    capsys.readouterr()
    for wrong in ("0.5,0.5", "a,b,c,d", "0.9,0.1,0.2,0.6"):
        assert run([*arguments, "--out", str(tmp_path / "c"), "--bands", wrong]) == 2
        assert "bands" in capsys.readouterr().err
    picks.write_text("query,router\nq,x\n")
    assert run([*arguments, "--out", str(tmp_path / "c"), "--picks", str(picks)]) == 2
    assert "query_id" in capsys.readouterr().err
