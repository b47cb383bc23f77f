"""A whole build by RouterBench+'s rules: pruned, specialists injected, released and evaluated."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml

from routeyard.flows.build import run_build
from routeyard.flows.cli import run
from routeyard.flows.label_audits import built
from routeyard.flows.plan import power_of
from routeyard.flows.recipe import load

TASKS = ("sums", "words", "dates")
#: Model → parameters in 10^9, and the tasks it is right on. `twin` answers as `sums-expert` does.
POOL = {
    "sums-expert": (1, "sums"), "twin": (1, "sums"),
    "words-expert": (7, "words"), "date-expert": (70, "dates"),
}  # fmt: skip


def recipe(folder: Path) -> Path:
    """90 questions of three tasks, four models that answered all of them, with their usage."""
    folder.mkdir(parents=True, exist_ok=True)
    questions, answers = [], []
    for i in range(90):
        task = TASKS[i % 3]
        questions.append(
            {"id": str(i), "question": f"{task}: what is {i} + {i + 1}?", "answer": str(2 * i + 1),
             "task": task}
        )  # fmt: skip
        for k, (model, (_, skill)) in enumerate(POOL.items()):
            right = task == skill or (i + k // 2) % 7 == 0
            output = f"Answer: {2 * i + 1 if right else 2 * i}"
            if i == 40 and model in ("twin", "words-expert"):
                output = "I would rather not say."
            answers.append(
                {"id": str(i), "model": model, "output": output, "prompt_tokens": 20 + k,
                 "completion_tokens": 5 + k, "latency_s": 0.5 + k, "cost_usd": (25 + 2 * k) / 1e6}
            )  # fmt: skip
    for name, rows in (("questions", questions), ("answers", answers)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    written = {
        "name": "small", "version": "1.0.0",
        "sources": [
            {"name": "three", "path": "questions.jsonl", "task": "{{ task }}", "scorer": "numeric",
             "fields": {"id": "id", "question": "question", "references": "answer",
                        "task": "{{ task }}"}}
        ],
        "pool": {"models": [
            {"model_id": name, "params_b": params, "price_in": 1.0, "price_out": 1.0,
             "price_date": "2026-01-01"} for name, (params, _) in POOL.items()
        ]},
        "collect": {
            "provider": "recorded",
            "recorded": [
                {"path": "answers.jsonl",
                 "fields": {"query": "id", "model": "model", "text": "output",
                            "prompt_tokens": "prompt_tokens", "latency_s": "latency_s",
                            "completion_tokens": "completion_tokens", "cost_usd": "cost_usd"}}
            ],
        },
        "label": {"default": {"unreadable": "null"}},
        "curate": [
            {"rule": "prune", "trade_off": 0.5, "target": 3, "protected": ["sums-expert"]},
            {"rule": "pseudo_specialists", "tasks": ["dates"]},
        ],
        "split": {"train": 0.5, "validation": 0.1, "test": 0.4},
    }  # fmt: skip
    del written["sources"][0]["task"]
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(written))
    return path


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("protocol")
    run_build(str(recipe(folder)), str(folder / "yard"), jobs=1, until="release")
    return folder / "yard"


@pytest.fixture
def release(yard: Path) -> Path:
    return yard / "releases/small/1.0.0"


@pytest.mark.usefixtures("without_pages")
def test_the_release_is_whole_and_every_cost_metric_is_there(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # No waiver stands in the recipe: the metering gate passes injected models, which cost
    # what the pool's medians say.
    assert run(["verify", str(release)]) == 0
    models = pq.read_table(release / "data/models.parquet").to_pylist()
    assert sorted(m["kind"] for m in models) == ["pseudo_specialist", "real", "real", "real"]
    card = (release / "README.md").read_text()
    # The card says what was put in, and that its costs are the pool's medians.
    assert "`pseudo-specialist:dates` is simulated: right on " in card
    assert "What a simulated model costs is an assumption: 7 · 10⁹ parameters (the pool's" in card
    for said in ("22 prompt tokens (the pool's median)", "7 completion tokens (the", "2.5 s an"):
        assert said in card, said
    out = tmp_path / "out"
    manifest = json.loads((release / "manifest.json").read_text())
    found = manifest["figures"]["certify"]["certificate"]
    assert found["verdict"] == "routable"
    assert found["figures"]["cost_matched_mix"]["value"] is not None
    arguments = ["evaluate", str(release), "--out", str(out), "--router", "task-map"]
    assert run([*arguments, "--router", "best-generalist", "--resamples", "100", "--all"]) == 0
    mine = {
        row["metric"]: row["value"]
        for row in pq.read_table(out / "metrics.parquet").to_pylist()
        if row["router"] == "task-map"
    }
    for measure in ("usd", "tokens", "latency", "params"):
        for name in ("audc", "peak_accuracy", "mean_cost", "aiq", "nauc"):
            assert mine[f"{name}[{measure}]"] is not None, (name, measure)
        assert f"qnc[{measure}]" in mine
        assert mine[f"utility[{measure},0.5]"] is not None
    tests = pq.read_table(out / "comparisons.parquet").column("metric").to_pylist()
    assert "mcnemar[usd]" in tests


def test_review_lists_nothing_of_pruned_models(yard: Path, tmp_path: Path) -> None:
    labels = built("small", yard)["labels"]
    unread = labels.filter(pc.is_null(labels.column("score")))
    assert sorted(unread.column("model_id").to_pylist()) == ["twin", "words-expert"]
    queue = tmp_path / "queue.csv"
    assert run(["review", "small", "--workspace", str(yard), "--csv", str(queue)]) == 0
    with queue.open() as file:
        rows = [row["model_id"] for row in csv.DictReader(file) if row["why"] == "undecided"]
    assert rows == ["words-expert"]
    with queue.open() as file:
        assert "twin" not in {row["model_id"] for row in csv.DictReader(file)}


def test_plan_says_what_the_test_questions_can_show(tmp_path: Path) -> None:
    (said,) = power_of(load(recipe(tmp_path))[0], 1000)
    # 400 test questions: d² = z²(0.2 − d²)/400, z = 1.95996 + 0.84162.
    z = 1.959964 + 0.841621
    shown = 100 * (0.2 * z**2 / (400 + z**2)) ** 0.5
    assert said.startswith(f"400 test questions can tell routers apart that differ by {shown:.1f} ")
    needed = [math.ceil(z**2 * (0.2 - d**2) / d**2) for d in (0.05, 0.02, 0.01)]
    assert "5 points {:,}, 2 points {:,}, 1 points {:,}".format(*needed) in said
