"""More layouts of public tools, in small: nothing is joined, counted or left out without a word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.pipelines.ingest.results import Results, read_results
from tests.ingest.results.made import ARMS, EVERY, SHARES, N, dump, right, shares, table


def a_row_per_figure(folder: Path) -> None:
    figures = [("accuracy", right), ("cost_usd", lambda arm, i: 0.001 * (i + 1))]
    rows = [[f"q{i}", arm, name, float(of(arm, i))] for arm, i in EVERY for name, of in figures]
    table(folder / "r.csv", ["question_id", "model", "metric", "value"], rows)


def named_scores_of_a_trace(folder: Path) -> None:
    dump(folder / "r.jsonl", [{"traceId": f"t{i}{arm}", "itemId": f"q{i}", "model": arm,
         "scores": [{"name": "correctness", "value": float(right(arm, i))},
                    {"name": "toxicity", "value": 0.01}]} for arm, i in EVERY])  # fmt: skip


def lists_by_model(folder: Path) -> None:
    dump(folder / "r.json", {arm: [int(right(arm, i)) for i in range(N)] for arm in ARMS})


def lists_by_suite_and_model(folder: Path) -> None:
    dump(folder / "r.json", {f"s{k}": {arm: [int(right(arm, i)) for i in range(k, N, 3)]
         for arm in ARMS} for k in range(3)})  # fmt: skip


def maps_by_model_and_suite(folder: Path) -> None:
    dump(folder / "r.json", {arm: {f"s{k}": {f"q{i}": right(arm, i) for i in range(k, N, 3)}
         for k in range(3)} for arm in ARMS})  # fmt: skip


def columns_as_lists(folder: Path) -> None:
    for arm in ARMS:
        dump(folder / f"{arm}.json", {"model": arm, "id": [f"p{i}" for i in range(N)],
             "results": [int(right(arm, i)) for i in range(N)]})  # fmt: skip


def names_of_two_levels(folder: Path) -> None:
    columns = {f"('{arm}', '{name}')": [float(of) for of in values] for arm in ARMS
               for name, values in (("score", [right(arm, i) for i in range(N)]),
                                    ("cost_usd", [0.001] * N))}  # fmt: skip
    pq.write_table(pa.table({**columns, "qid": [f"q{i}" for i in range(N)]}), folder / "r.parquet")


def a_column_of_each_model_in_its_file(folder: Path) -> None:
    for arm in ARMS:
        for suite in ("algebra", "law"):
            rows = [[i, f"what is {i}?", "4", "5", "A", right(arm, i), 0.4] for i in range(N)]
            head = ["", *"0123", f"{arm}_correct", f"{arm}_choiceA_probs"]
            table(folder / f"results_{arm}" / f"{suite}.csv", head, rows)


def points_of_so_many(folder: Path) -> None:
    rows = [[f"q{i}", arm, (i % 4 + 1) * right(arm, i), i % 4 + 1] for arm, i in EVERY]
    table(folder / "r.csv", ["question_id", "model", "points", "max_points"], rows)


def right_ones_of_n_samples(folder: Path) -> None:
    dump(folder / "r.jsonl", [{"task_id": f"t{i}", "model": arm, "n": 10, "c": 10 * right(arm, i)}
                              for arm, i in EVERY])  # fmt: skip


def ids_spelled_otherwise(folder: Path) -> None:
    for arm, form in zip(ARMS, ("{}", "{}.0", "{:03d}"), strict=True):
        rows = [[form.format(i), int(right(arm, i))] for i in range(N)]
        table(folder / f"{arm}.csv", ["question_id", "score"], rows)


def ids_from_another_number_on(folder: Path) -> None:
    for k, arm in enumerate(ARMS):
        rows = [[i + (k == 1), f"what is {i}?", int(right(arm, i))] for i in range(N)]
        table(folder / f"{arm}.csv", ["question_id", "question", "score"], rows)


def ids_of_trials(folder: Path) -> None:
    for arm, i in EVERY:
        dump(folder / arm / f"task{i}" / "result.json", {"id": f"{i}-{arm}", "task_name": f"t{i}",
             "agent_info": {"model_info": {"name": arm}},
             "verifier_result": {"rewards": {"reward": float(right(arm, i))}}})  # fmt: skip
    for arm in ARMS:
        metrics = {f"agent__{arm}__tb": {"n_trials": N, "metrics": [{"mean": SHARES[arm]}]}}
        dump(folder / arm / "result.json", {"id": "j", "stats": {"evals": metrics}})


def counts_below_tokens(folder: Path) -> None:
    rows = [[arm, f"answer {i} of {arm}", 40 + i, 7, int(right(arm, i)), f"ex{i}"]
            for arm, i in EVERY]  # fmt: skip
    head = ["llm.model_name", "output.value", "llm.token_count.prompt",
            "llm.token_count.completion", "eval.Correctness.score", "example_id"]  # fmt: skip
    table(folder / "spans.csv", head, rows)


def letters_of_one_scorer(folder: Path) -> None:
    rows = [[i, 1, arm, "C" if right(arm, i) else "I"] for arm, i in EVERY]
    table(folder / "samples.csv", ["id", "epoch", "model", "score_match"], rows)


LAYOUTS = (
    a_row_per_figure, named_scores_of_a_trace, lists_by_model, lists_by_suite_and_model,
    maps_by_model_and_suite, columns_as_lists, names_of_two_levels,
    a_column_of_each_model_in_its_file, points_of_so_many, right_ones_of_n_samples,
    ids_spelled_otherwise, ids_from_another_number_on, ids_of_trials, counts_below_tokens,
    letters_of_one_scorer,
)  # fmt: skip


def keys(found: Results) -> set[tuple[str, str]]:
    pairs = zip(*(found.table.column(n).to_pylist() for n in ("suite", "question")), strict=True)
    return {*pairs}


@pytest.mark.parametrize("make", LAYOUTS, ids=lambda one: one.__name__)
def test_accuracies_and_questions_are_those_that_were_written(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path)
    found = read_results(tmp_path)
    assert shares(found) == {k: round(v, 12) for k, v in SHARES.items()}
    asked = 2 * N if make is a_column_of_each_model_in_its_file else N
    assert len(keys(found)) == asked
    assert found.table.num_rows == len(ARMS) * asked


def test_a_question_that_a_person_names_is_no_other_column(tmp_path: Path) -> None:
    # Without a mapping the text is taken for the question: other models have other ids for it.
    ids_from_another_number_on(tmp_path)
    assert read_results(tmp_path).columns["question"] == "question"
    found = read_results(tmp_path, {"question": "question_id"})
    assert found.columns["question"] == "question_id"


def test_figures_of_one_answer_are_its_columns(tmp_path: Path) -> None:
    a_row_per_figure(tmp_path)
    assert read_results(tmp_path).table.column("cost_usd").null_count == 0


def test_counts_of_tokens_are_no_texts(tmp_path: Path) -> None:
    counts_below_tokens(tmp_path)
    found = read_results(tmp_path).table.to_pylist()[0]
    assert (found["text"], found["prompt_tokens"]) == ("answer 0 of gpt-4o", 40.0)


def test_the_right_label_of_a_question_is_no_score(tmp_path: Path) -> None:
    rows = [[f"q{i}", arm, i % 2, i % 2 if right(arm, i) else 1 - i % 2] for arm, i in EVERY]
    table(tmp_path / "r.csv", ["id", "model", "label", "prediction"], rows)
    found = read_results(tmp_path)
    assert found.table.column("score").null_count == 3 * N
    assert found.columns["reference"] == "label"
    table(tmp_path / "r.csv", ["id", "model", "label", "score"],
          [[*row[:3], int(right(row[1], int(row[0][1:])))] for row in rows])  # fmt: skip
    assert shares(read_results(tmp_path))["gpt-4o"] == round(SHARES["gpt-4o"], 12)


def test_words_that_are_neither_right_nor_wrong_are_named(tmp_path: Path) -> None:
    words = {3: "NOT_ATTEMPTED", 5: "timeout"}
    rows = [[f"q{i}", arm, words.get(i, "CORRECT" if right(arm, i) else "INCORRECT")]
            for arm, i in EVERY]  # fmt: skip
    table(tmp_path / "r.csv", ["id", "model", "grade"], rows)
    found = read_results(tmp_path)
    asked = " ".join(found.questions)
    assert "3 answers with 'grade' 'NOT_ATTEMPTED' count as wrong" in asked
    assert "3 answers with 'grade' 'timeout' count as missing, and not wrong" in asked
    assert found.table.column("score").null_count == 3
    assert found.table.column("status").to_pylist().count("timeout") == 3


def test_grades_in_letters_are_not_left_out_silently(tmp_path: Path) -> None:
    rows = [[f"q{i}", arm, f"text {i} of {arm}", "A" if right(arm, i) else "C"] for arm, i in EVERY]
    table(tmp_path / "r.csv", ["id", "model", "response", "grade"], rows)
    assert "'grade' is called a score" in " ".join(read_results(tmp_path).questions)


def test_who_won_is_a_question(tmp_path: Path) -> None:
    rows = [[f"q{i}", arm, ("win", "lose", "tie")[i % 3]] for arm, i in EVERY]
    table(tmp_path / "r.csv", ["id", "model", "result"], rows)
    assert "'result' says who won (lose, tie, win)" in " ".join(read_results(tmp_path).questions)


def test_runs_of_two_days_are_samples_and_no_suites(tmp_path: Path) -> None:
    for arm, i in ((arm, i) for arm in ARMS for i in (1, 2)):
        rows = [{"id": f"q{q}", "model": arm, "correct": right(arm, q + i)} for q in range(N)]
        dump(tmp_path / arm / f"results_2024-0{i}-01.json", rows)
    found = read_results(tmp_path)
    assert set(found.table.column("sample").to_pylist()) == {0, 1}
    assert "files of 2 runs answer the same questions" in " ".join(found.questions)


def test_tokens_that_the_cache_had_belong_to_the_prompt(tmp_path: Path) -> None:
    usage = {"input_tokens": 40, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 5,
             "output_tokens": 3}  # fmt: skip
    dump(tmp_path / "r.jsonl", [{"id": f"q{i}", "model": arm, "correct": right(arm, i),
                                 "usage": usage} for arm, i in EVERY])  # fmt: skip
    assert set(read_results(tmp_path).table.column("prompt_tokens").to_pylist()) == {1045.0}


def test_rows_beside_the_answers_that_are_not_read_are_counted(tmp_path: Path) -> None:
    rows = [{"id": f"q{i}", "model": arm, "correct": right(arm, i)} for arm, i in EVERY]
    dump(tmp_path / "scores.json", rows)
    battles = [{"generator_1": "gpt-4o", "generator_2": arm, "preference": 1} for arm, _ in EVERY]
    dump(tmp_path / "annotations.json", battles)
    notes = " ".join(note.says for note in read_results(tmp_path).notes)
    assert "72 rows of annotations.json were not read: 'generator_1' and 'generator_2'" in notes


def test_paths_of_somebodys_machine_are_named(tmp_path: Path) -> None:
    rows = [{"id": f"q{i}", "model": arm, "correct": right(arm, i)} for arm, i in EVERY]
    dump(
        tmp_path / "r.json", {"log": "/Users/mara.li/runs/7", "home": "/home/user/x", "rows": rows}
    )
    [note] = [one for one in read_results(tmp_path).notes if one.kind == "paths"]
    assert "'/Users/mara.li/'" in note.says
    assert "/home/user" not in note.says


def test_tokens_read_from_a_cache_are_counted(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 3,
             "prompt_tokens_details": {"cached_tokens": 60}}  # fmt: skip
    dump(tmp_path / "r.jsonl", [{"id": f"q{i}", "model": arm, "correct": right(arm, i),
                                 "usage": usage} for arm, i in EVERY])  # fmt: skip
    notes = " ".join(note.says for note in read_results(tmp_path).notes)
    assert "4,320 of 7,200 prompt tokens of 72 answers were read from a cache" in notes
