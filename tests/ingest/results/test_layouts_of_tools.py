"""Layouts that public evaluation tools write, in small: accuracies as written, or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.common.errors import SourceError
from routeyard.pipelines.ingest.results import AggregatesOnly, read_results
from tests.ingest.results.made import ARMS, SHARES, N, dump, right, shares, table


def events_of_kinds(folder: Path) -> None:
    for arm in ARMS:
        rows: list[dict[str, Any]] = [{"spec": {"completion_fns": [arm], "eval_name": "e.dev"}}]
        for i in range(N):
            about = {"run_id": "r", "sample_id": f"e.dev.{i}", "created_at": "2023"}
            rows += [
                {**about, "type": "sampling", "data": {"sampled": [f"{arm} {i}"]}},
                {**about, "type": "match", "data": {"correct": right(arm, i), "expected": str(i)}},
            ]  # fmt: skip
        rows.append({"final_report": {"accuracy": SHARES[arm], "boostrap_std": 0.1}})
        dump(folder / f"{arm}.jsonl", rows)


def metric_under_its_name(folder: Path) -> None:
    for arm in ARMS:
        rows = [{"doc": {"query": f"what is {i}?", "id": str(i)},
                 "metric": {"extractive_match": float(right(arm, i))},
                 "model_response": {"text": [f"{arm} {i}"], "output_tokens": [[1, 2, 3]]}}
                for i in range(N)]  # fmt: skip
        path = folder / arm / "details.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows), path)


def one_report_per_instance(folder: Path) -> None:
    tests = {"F2P": {"success": ["t1"], "failure": []}, "P2P": {"success": ["t2"], "failure": []}}
    for arm in ARMS:
        for i in range(N):
            name = f"repo__repo-{i}"
            report = {"patch_exists": True, "resolved": right(arm, i), "tests_status": tests}
            dump(folder / "run" / arm / name / "report.json", {name: report})


def index_without_a_name(folder: Path) -> None:
    rows = [[arm, *(int(right(arm, i)) for i in range(N))] for arm in ARMS]
    table(folder / "irt.csv", ["", *(f"item_{i}" for i in range(N))], rows)


def answers_inside_questions(folder: Path) -> None:
    dump(folder / "x.jsonl", [{"question_id": f"q{i}", "question": f"is it {i}?", "answer": str(i),
         "results": [{"model": arm, "correct": right(arm, i)} for arm in ARMS]}
         for i in range(N)])  # fmt: skip


def answers_inside_parquet(folder: Path) -> None:
    rows = [{"id": f"q{i}", "results": [{"model": a, "correct": right(a, i)} for a in ARMS]}
            for i in range(N)]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), folder / "x.parquet")


def models_below_one_key(folder: Path) -> None:
    dump(folder / "x.jsonl", [{"question_id": f"q{i}",
         "results": {a: {"correct": right(a, i)} for a in ARMS}} for i in range(N)])  # fmt: skip


def verdict_beside_its_metrics(folder: Path) -> None:
    for arm in ARMS:
        cases = [{"name": f"case_{i}", "actualOutput": f"{arm} {i}", "success": right(arm, i),
                  "metricsData": [{"name": "GEval", "score": 0.9 if right(arm, i) else 0.2,
                                   "evaluationModel": "gpt-4.1", "evaluationCost": 0.002}],
                  "evaluationCost": 0.002} for i in range(N)]  # fmt: skip
        dump(folder / f"{arm}.json", {"testCases": cases, "evaluationCost": 0.05})


def several_raters(folder: Path) -> None:
    rows = [[f"q{i}", arm, rater, int(right(arm, i))]
            for arm in ARMS for i in range(N) for rater in ("ann", "bob")]  # fmt: skip
    table(folder / "human.csv", ["item", "system", "rater", "correct"], rows)


def one_arm_in_percent(folder: Path) -> None:
    rows = [[f"q{i}", arm, (100 if arm == ARMS[1] else 1) * right(arm, i)]
            for arm in ARMS for i in range(N)]  # fmt: skip
    table(folder / "r.csv", ["id", "model", "score"], rows)


def candidates_and_a_grader(folder: Path) -> None:
    rows = [[f"q{i}", arm, "gpt-4.1", int(right(arm, i))] for arm in ARMS for i in range(N)]
    table(folder / "graded.csv", ["qid", "candidate", "grader_model", "verdict"], rows)


LAYOUTS = (
    events_of_kinds, metric_under_its_name, one_report_per_instance, index_without_a_name,
    answers_inside_questions, answers_inside_parquet, models_below_one_key,
    verdict_beside_its_metrics, several_raters, one_arm_in_percent, candidates_and_a_grader,
)  # fmt: skip


@pytest.mark.parametrize("make", LAYOUTS, ids=lambda one: one.__name__)
def test_accuracies_are_those_that_were_written(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path)
    assert shares(read_results(tmp_path)) == {k: round(v, 12) for k, v in SHARES.items()}


def test_what_a_judge_cost_is_no_cost_of_the_model(tmp_path: Path) -> None:
    verdict_beside_its_metrics(tmp_path)
    assert read_results(tmp_path).table.column("cost_usd").null_count == 3 * N


def test_events_of_one_answer_are_one_row_with_its_text(tmp_path: Path) -> None:
    events_of_kinds(tmp_path)
    found = read_results(tmp_path).table
    assert found.num_rows == 3 * N
    assert found.column("text").null_count == 0


def test_scores_of_two_scales_in_one_column_are_a_question(tmp_path: Path) -> None:
    one_arm_in_percent(tmp_path)
    asked = " ".join(read_results(tmp_path).questions)
    assert "scores of 'gpt-4o' lie in 0 to 1 and those of others in 0 to 100" in asked


def test_lists_of_ids_take_tokens_and_statuses_from_the_runs_beside_them(tmp_path: Path) -> None:
    for arm in ARMS:
        runs = [{"task_id": f"t{i}", "is_resolved": right(arm, i) if i else None,
                 "failure_mode": "unset" if i else "agent_timeout", "total_input_tokens": 9}
                for i in range(N)]  # fmt: skip
        solved = [one["task_id"] for one in runs if one["is_resolved"]]
        rest = [one["task_id"] for one in runs if not one["is_resolved"]]
        lists = {"results": runs, "resolved_ids": solved, "unresolved_ids": rest}
        dump(tmp_path / arm / "results.json", lists)
    found = read_results(tmp_path).table
    assert found.column("prompt_tokens").to_pylist() == [9.0] * 3 * N
    assert found.column("status").to_pylist().count("agent_timeout") == 3


def test_lists_of_successes_alone_are_no_accuracies(tmp_path: Path) -> None:
    for arm in ARMS:
        solved = [f"t{i}" for i in range(N) if right(arm, i)]
        dump(tmp_path / arm / "results.json", {"no_generation": [], "resolved": solved})
    found = read_results(tmp_path)
    assert shares(found)["gpt-4o"] == round(16 / 20, 12)  # 20 of 24 are solved by any arm
    assert "every accuracy is too high" in " ".join(note.says for note in found.notes)
    with pytest.raises(SourceError, match="lists name who succeeded"):
        read_results(tmp_path / "gpt-4o")


def test_points_of_a_judge_that_failed_are_missing(tmp_path: Path) -> None:
    rows = [[f"q{i}", arm, -1 if i == 3 else (9, 3, 5)[i % 3]] for arm in ARMS for i in range(N)]
    table(tmp_path / "r.csv", ["question_id", "model", "score"], rows)
    found = read_results(tmp_path)
    assert found.table.column("score").null_count == 3
    assert "-1 means that the score is missing" in " ".join(found.questions)


def test_further_attempts_are_a_question(tmp_path: Path) -> None:
    rows = [[f"q{i}", arm, int(right(arm, i)), int(i % 4 == 0)] for arm in ARMS for i in range(N)]
    table(tmp_path / "r.csv", ["task_id", "model", "correct_1", "correct_2"], rows)
    dump(tmp_path / "r.json", [{"task_id": q, "model": arm, "attempt_1": {"correct": bool(a)},
         "attempt_2": {"correct": bool(b)}} for q, arm, a, b in rows])  # fmt: skip
    (tmp_path / "r.csv").unlink()
    asked = " ".join(read_results(tmp_path).questions)
    assert "attempt_2.correct are further ones of the same answer: the best of them is" in asked


def battles(folder: Path) -> None:
    rows = [[f"q{i}", "gpt-4o", "llama-3-8b", "model_a", 1, True] for i in range(N)]
    table(folder / "b.csv", ["question_id", "model_a", "model_b", "winner", "turn", "anony"], rows)


def figures_of_suites(folder: Path) -> None:
    rows = [[f"task{i}", "acc", 50.5 + i, 40.1, 30.2] for i in range(12)]
    table(folder / "summary.csv", ["dataset", "metric", *ARMS], rows)


def ranks(folder: Path) -> None:
    table(folder / "r.csv", ["question", *(f"{arm}_rank" for arm in ARMS)],
          [[f"q{i}", 1, 2, 3] for i in range(N)])  # fmt: skip


def failures_alone(folder: Path) -> None:
    for arm in ARMS:
        wrong = [{"id": f"s{i}", "model_name": arm, "valid": False} for i in range(N)
                 if not right(arm, i)]  # fmt: skip
        head = {"accuracy": SHARES[arm], "correct_count": 1, "total_count": N}
        dump(folder / arm / "score.jsonl", [head, *wrong])


def header_twice(folder: Path) -> None:
    table(folder / "r.csv", ["id", "gpt-4o", "gpt-4o"], [[f"q{i}", 0, 1] for i in range(N)])


def a_workbook(folder: Path) -> None:
    (folder / "r.xls").write_bytes(b"PK\x03\x04")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (battles, "two models of a battle"),
        (figures_of_suites, "names 12 suites, with one figure of each model"),
        (ranks, "score or the answer"),
        (failures_alone, "rows list only wrong answers: 'accuracy' states another"),
        (header_twice, "names 'gpt-4o' several times"),
        (a_workbook, "where openpyxl is installed"),
    ],
)
def test_what_is_no_table_of_answers_is_refused_with_its_reason(
    make: Callable[[Path], None], says: str, tmp_path: Path
) -> None:
    make(tmp_path)
    with pytest.raises((SourceError, AggregatesOnly), match=says):
        read_results(tmp_path)


def test_a_workbook_is_read_sheet_by_sheet_where_a_library_for_it_is_installed(
    tmp_path: Path,
) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    rows = [["id", "model", "correct"], [None, None, None]]
    rows += [[f"q{n}", m, n % 2] for n in range(N) for m in ("gpt-4o", "llama-3-8b")]
    for row in rows:
        book.active.append(row)
    book.create_sheet("empty").append(["nothing"])
    book.save(tmp_path / "r.xlsx")
    read = read_results(tmp_path / "r.xlsx")
    assert read.table.num_rows == 2 * N
    assert read.columns["arm"] == "model"
    assert read.table.column("at")[0].as_py() == "r.xlsx:Sheet, row 1"
    (tmp_path / "r.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(SourceError):
        read_results(tmp_path / "r.xlsx")
