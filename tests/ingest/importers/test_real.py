"""Real recorded data, put back into the layout of its public repository, then imported."""

from __future__ import annotations

import csv
import json
import zipfile
from collections import defaultdict
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.ingest.importers.write import ImportReport, run_import

pytestmark = pytest.mark.data


def _import(name: str, path: Path, tmp_path: Path) -> tuple[ImportReport, list[dict]]:
    done = run_import(IMPORTERS.get(name), path, tmp_path / "imports" / name)
    return done, pq.read_table(done.folder / "responses.parquet").to_pylist()


def _mean(answers: list[dict]) -> dict[str, float]:
    scores = defaultdict(list)
    for answer in answers:
        scores[answer["model"]].append(answer["score"])
    return {model: sum(values) / len(values) for model, values in scores.items()}


def test_routellm_mmlu_keeps_every_label(data, tmp_path):
    rows = pq.read_table(data / "routellm/mmlu.parquet").to_pylist()
    subjects: dict[str, dict[int, dict]] = defaultdict(dict)
    for row in rows:
        cells = subjects[row["subject"]].setdefault(row["row"], {"prompt": row["prompt"]})
        cells[row["model"]] = row["correct"]
    folder = tmp_path / "mmlu" / "responses"
    folder.mkdir(parents=True)
    for subject, cells in subjects.items():
        with (folder / f"mmlu_{subject}.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(cells[0]))
            writer.writeheader()
            writer.writerows(cells[number] for number in sorted(cells))
    done, answers = _import("routellm", tmp_path / "mmlu", tmp_path)
    assert (done.questions, done.answers) == (14_042, 28_084)
    stored = defaultdict(list)
    for row in rows:
        stored[row["model"]].append(row["correct"])
    assert _mean(answers) == {m: sum(v) / len(v) for m, v in stored.items()}


def test_zeroeval_gsm_outputs_are_verbatim(data, tmp_path):
    queries = {
        row["query_id"]: row
        for row in pq.read_table(data / "zeroeval_gsm/queries.parquet").to_pylist()
    }
    table = pq.read_table(data / "zeroeval_gsm/responses.parquet")
    models = sorted(set(table.column("model").to_pylist()))[:3]
    outputs = {}
    for model in models:
        rows = table.filter(pc.equal(table.column("model").cast("string"), model)).to_pylist()
        upstream = [
            {
                "id": row["query_id"],
                "question": queries[row["query_id"]]["question"],
                "answer": "#### " + queries[row["query_id"]]["gold_answer"].lstrip("# "),
                "output": [row["output"]],
                "generator": row["generator"],
                "chat_history": [queries[row["query_id"]]["prompt"]],
            }
            for row in rows
        ]
        outputs |= {(f"gsm/{row['query_id']}", model): row["output"] for row in rows}
        path = tmp_path / "result_dirs/gsm" / f"{model}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(upstream), encoding="utf-8")
    done, answers = _import("zeroeval", tmp_path / "result_dirs", tmp_path)
    assert (done.questions, done.models) == (1_319, 3)
    assert {(a["query"], a["model"]): a["text"] for a in answers} == outputs
    asked = pq.read_table(done.folder / "queries.parquet").to_pylist()
    gold = {f"gsm/{q}": row["gold_answer"].lstrip("# ") for q, row in queries.items()}
    assert {row["id"]: row["references"] for row in asked} == {q: [g] for q, g in gold.items()}


def test_mmlu_pro_zips_respect_the_key_of_each_run(data, tmp_path):
    folder = data / "mmlu_pro"
    queries = {r["question_id"]: r for r in pq.read_table(folder / "queries.parquet").to_pylist()}
    variants = pq.read_table(folder / "question_variants.parquet").to_pylist()
    chosen = {model for variant in variants for model in list(variant["models"])[:1]}
    models = sorted(chosen)[:2]
    table = pq.read_table(folder / "responses.parquet")
    expected = 0
    (tmp_path / "eval_results").mkdir()
    for model in models:
        rows = table.filter(pc.equal(table.column("model").cast("string"), model)).to_pylist()
        own = {v["question_id"]: v for v in variants if model in v["models"]}
        records: list = []
        for row in rows:
            asked = own.get(row["question_id"], queries[row["question_id"]])
            records.append(
                {
                    "question_id": row["question_id"],
                    "question": asked["question"],
                    "options": list(asked["options"]),
                    "answer": row["answer_in_run"],
                    "answer_index": 0,
                    "category": asked["category"],
                    "src": asked["src"],
                    "pred": row["pred"],
                    "model_outputs": row["output"],
                }
            )
        expected += len(records)
        name = f"model_outputs_{model.replace('/', '_')}_5shots"
        with zipfile.ZipFile(
            tmp_path / "eval_results" / f"{name}.zip", "w", zipfile.ZIP_DEFLATED
        ) as archive:
            archive.writestr(f"{name}.json", json.dumps(records))
    done, answers = _import("mmlu_pro", tmp_path / "eval_results", tmp_path)
    assert (done.models, done.answers) == (2, expected)
    given = {
        r["id"]: r["references"] for r in pq.read_table(done.folder / "queries.parquet").to_pylist()
    }
    graded = {(a["query"], a["model"]): a["graded_against"] or given[a["query"]] for a in answers}
    wrong = 0
    for model in models:
        rows = table.filter(pc.equal(table.column("model").cast("string"), model)).to_pylist()
        short = model.replace("/", "_")
        wrong += sum(graded[str(r["question_id"]), short] != [r["answer_in_run"]] for r in rows)
    assert wrong == 0


def test_alpaca_eval_reproduces_the_leaderboard(data, tmp_path):
    with (data / "alpaca_eval/leaderboard.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    name = next(n for n in ("model", "name", "") if n in rows[0])
    published = {row[name]: float(row["win_rate"]) for row in rows}
    table = pq.read_table(data / "alpaca_eval/annotations.parquet")
    models = sorted(set(table.column("model").to_pylist()) & set(published))
    for model in models:
        kept = table.filter(pc.equal(table.column("model").cast("string"), model)).to_pylist()
        records = [
            {
                "instruction": row["instruction"],
                "dataset": row["dataset"],
                "output_1": row["reference_output"],
                "generator_1": row["reference_model"],
                "output_2": row["output"],
                "generator_2": row["model"],
                "annotator": row["annotator"],
                "preference": row["preference"],
            }
            for row in kept
        ]
        path = tmp_path / "results" / model / kept[0]["annotator"] / "annotations.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(records), encoding="utf-8")
    _, answers = _import("alpaca_eval", tmp_path / "results", tmp_path)
    found = _mean(answers)
    assert len(models) == 28
    for model in models:
        assert 100 * found[model] == pytest.approx(published[model], abs=1e-6)
