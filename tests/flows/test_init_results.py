"""`routeyard init` on results that somebody has: the recipe builds as it is written."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from routeyard.flows.cli import run
from routeyard.flows.new_recipe.write import start_recipe
from routeyard.flows.recipe import load
from routeyard.flows.recipe_check import faults
from routeyard.pipelines.common.errors import BadInput, SourceError

#: The commonest file of all: arm, instance, suite, score and cost; ids alone, no texts.
LONG = [
    {"arm": arm, "instance": f"t{i}", "suite": "web" if i < 12 else "shell",
     "score": 100.0 * ((i * k) % 3 == 0), "cost": 0.01 * k if i else 0.0,
     "input_tokens": 100 + i, "output_tokens": 20.0 if i != 3 else 20.5,
     "latency": 1.5 if i != 4 else -1.0}
    for k, arm in enumerate(["big", "mid", "small"], start=1) for i in range(24)
]  # fmt: skip


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_a_long_table_without_texts_builds_with_its_own_scores(tmp_path: Path) -> None:
    # It became a simulated pool with a scorer guessed from the first rows, and its check failed.
    path = table(tmp_path / "runs.csv", LONG)
    recipe = tmp_path / "mine.yaml"
    assert run(["init", str(recipe), "--from", str(path)]) == 0
    assert faults(str(recipe)) == []
    checked, _ = load(str(recipe))
    assert [model.model_id for model in checked.pool.models] == ["big", "mid", "small"]
    assert (checked.collect.provider, checked.sources[0].scorer) == ("recorded", "given")
    assert checked.curate == []  # ids are not embedded
    said = " ".join(checked.release.known_issues)
    assert "3 values of completion_tokens that cannot be (first 20.5 at runs.csv, row 4)" in said
    assert "3 values of latency_s that cannot be (first -1 at runs.csv, row 5)" in said
    assert "3 zeros of cost_usd beside an answer" in said
    yard = tmp_path / "yard"
    assert run(["build", str(recipe), "--workspace", str(yard)]) == 0
    release = yard / "releases" / "mine" / "1.0.0"
    labels = pq.read_table(next(release.rglob("labels*.parquet"))).to_pylist()
    for k, arm in enumerate(["big", "mid", "small"], start=1):
        mine = [row["score"] for row in labels if row["model_id"] == arm]
        assert sum(mine) / len(mine) == sum((i * k) % 3 == 0 for i in range(24)) / 24


def test_a_seldom_suite_at_the_end_of_a_file_is_read(tmp_path: Path) -> None:
    # A guess from the first 200 rows did not see it.
    rows = [{"model": m, "id": f"a{i}", "dataset": "d1", "correct": "yes" if i % 2 else "no"}
            for m in ("x", "y") for i in range(300)]  # fmt: skip
    rows += [{**row, "id": f"b{n}", "dataset": "d2"} for n, row in enumerate(rows[:2])]
    rows[-1]["model"] = "y"
    done = start_recipe(tmp_path / "r.yaml", str(table(tmp_path / "a.csv", rows)), fields={})
    asked = pq.read_table(tmp_path / "r-data" / "queries.parquet").to_pylist()
    assert {row["task"] for row in asked} == {"d1", "d2"}
    assert done.scorer.scorer == "given"


def test_decoding_modes_are_arms_and_seeds_are_samples(tmp_path: Path) -> None:
    rows = [
        {"model": m, "question_id": i, "mode": mode, "seed": seed, "score": int(i > seed)}
        for m in ("x", "y") for mode in ("greedy", "sampling") for seed in (7, 9) for i in range(12)
    ]  # fmt: skip
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    start_recipe(tmp_path / "r.yaml", str(path), fields={})
    asked = pq.read_table(tmp_path / "r-data" / "queries.parquet")
    answers = pq.read_table(tmp_path / "r-data" / "responses.parquet").to_pylist()
    assert asked.num_rows == 12
    assert {row["model"] for row in answers} == {
        "x · greedy", "x · sampling", "y · greedy", "y · sampling",
    }  # fmt: skip
    assert {row["sample"] for row in answers} == {0, 1}
    assert faults(str(tmp_path / "r.yaml")) == []


def test_questions_that_are_their_own_ids_have_texts(tmp_path: Path) -> None:
    rows = [{"model": m, "question": f"What is {i} + {i}?", "score": i % 2}
            for m in ("x", "y") for i in range(12)]  # fmt: skip
    path = table(tmp_path / "runs.csv", rows)
    start_recipe(tmp_path / "r.yaml", str(path), fields={})
    checked, _ = load(str(tmp_path / "r.yaml"))
    assert checked.sources[0].redistribute_text
    assert [rule.rule for rule in checked.curate] == ["dedup"]


def test_answers_without_questions_keep_their_own_texts(tmp_path: Path) -> None:
    # No licence forbids anything: the release held back what the models had answered.
    rows = [{"model": m, "id": f"q{i}", "output": f"It is {i}.", "score": i % 2}
            for m in ("x", "y") for i in range(12)]  # fmt: skip
    start_recipe(tmp_path / "r.yaml", str(table(tmp_path / "runs.csv", rows)), fields={})
    checked, _ = load(str(tmp_path / "r.yaml"))
    assert checked.sources[0].redistribute_text
    assert checked.curate == []


@pytest.mark.parametrize("reworded", [False, True])
def test_what_was_asked_is_stated_beside_each_answer(
    reworded: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"model": m, "id": f"q{i}", "prompt": f"What is {i} + {i}?", "output": f"It is {i}.",
             "score": i % 2} for m in ("x", "y", "z") for i in range(12)]  # fmt: skip
    if reworded:
        rows[-1]["prompt"] = "Name a prime above 100."
    start_recipe(tmp_path / "r.yaml", str(table(tmp_path / "runs.csv", rows)), fields={})
    assert run(["recipe", "check", str(tmp_path / "r.yaml")]) == 0
    said = capsys.readouterr().out
    assert "rests on the ids alone" not in said
    assert ("1 answers were given to prompts that do not ask" in said) == reworded


@pytest.mark.parametrize("column", ["score", "error"])
def test_rows_of_models_that_no_score_is_read_of_are_no_questions(
    column: str, tmp_path: Path
) -> None:
    cells = (-0.25, -1.5) if column == "score" else (0, 1)
    rows = [{"model": m, "question_id": f"p{i}", column: cells[i % 2]}
            for m in ("gpt-4o", "qwen-7b") for i in range(40)]  # fmt: skip
    with pytest.raises(SourceError, match="no answers of models were found"):
        start_recipe(tmp_path / "r.yaml", str(table(tmp_path / "t.csv", rows)), fields={})


def test_columns_that_may_be_scores_of_models_are_asked_for(tmp_path: Path) -> None:
    rows = [{"id": f"p{i}", "question": f"What is the value of thing {i}?", "answer": str(i),
             "alpha": 100 * (i % 2), "beta": 100 * (i % 3 == 0)} for i in range(40)]  # fmt: skip
    done = start_recipe(tmp_path / "r.yaml", str(table(tmp_path / "t.csv", rows)), fields={})
    assert any("alpha, beta are taken for models" in one for one in done.lacks)


def test_a_leaderboard_is_refused_with_its_reason(tmp_path: Path) -> None:
    rows = [{"model": f"m{i}", "math": 40.5 + i, "code": 30.25 + i, "law": 50.0} for i in range(9)]
    path = table(tmp_path / "board.csv", rows)
    with pytest.raises(BadInput, match="aggregates, not answers"):
        start_recipe(tmp_path / "r.yaml", str(path), fields={})


#: Folder below `shapes` → models and questions.
SHAPES = {
    "swebench_mini_info": (4, 500), "swe_reports/results": (3, 102), "mint_multiturn": (2, 91),
    "trustedrouter_gateway": (2, 20), "helm_runs": (2, 25), "routellm_wide_bool": (2, 1796),
    "routerarena_cached": (2, 640), "swe_reports/evaluation": (2, 91), "inspect_logs": (9, 26),
}  # fmt: skip


#: Those that take seconds to read; `tests/ingest/results/test_shapes.py` reads them too.
UNHURRIED = ("trustedrouter_gateway", "swe_reports/results")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in UNHURRIED else ()) for n in SHAPES]
)
def test_recipes_of_public_results_have_no_fault(name: str, data: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "r.yaml"
    start_recipe(recipe, str(data / "shapes" / name), fields={})
    assert faults(str(recipe)) == []
    models, questions = SHAPES[name]
    assert len(load(str(recipe))[0].pool.models) == models
    assert pq.read_metadata(tmp_path / "r-data" / "queries.parquet").num_rows == questions
