"""Layouts that no importer knows, in small: what is read is what was written, or a question."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from routeyard.flows.audits import audit_path
from routeyard.pipelines.common.errors import RouteyardError, SourceError
from routeyard.pipelines.ingest.results import AggregatesOnly, read_results
from tests.ingest.results.made import dump, shares, table

ARMS = ("gpt-4o", "llama-3-8b")
N = 20


def right(arm: str, i: int) -> bool:
    """Whether an arm answers a question: 7 of 20 and 10 of 20."""
    return i % 3 == 0 if arm == ARMS[0] else i % 2 == 0


SHARES = {ARMS[0]: 7 / 20, ARMS[1]: 10 / 20}


def attempts_per_id(folder: Path) -> None:
    for arm in ARMS:
        made = {f"HumanEval/{i}": [{"solution": "def f(): 1", "base_status": "pass",
                "plus_status": "pass" if right(arm, i) else "fail"}] for i in range(N)}  # fmt: skip
        dump(folder / f"{arm}_eval_results.json", {"date": "x", "eval": made})


def trials_with_lists(folder: Path) -> None:
    for arm in ARMS:
        trials = [{"id": f"{arm}{i}", "task_id": f"t{i}", "instruction": f"do {i}",
                   "is_resolved": right(arm, i), "total_input_tokens": 9}
                  for i in range(N)]  # fmt: skip
        solved = [f"t{i}" for i in range(N) if right(arm, i)]
        rest = [f"t{i}" for i in range(N) if not right(arm, i)]
        dump(folder / arm / "results.json", {"results": trials, "accuracy": 0.5,
             "resolved_ids": solved, "unresolved_ids": rest})  # fmt: skip


def map_per_task_file(folder: Path) -> None:
    for arm in ARMS:
        for task, offset in (("gsm", 0), ("law", 10)):
            dump(folder / "predictions" / arm / f"{task}.json", {
                str(i): {"origin_prompt": f"{task} {i}?", "prediction": f"it is {arm}",
                         "correct": right(arm, i + offset)} for i in range(10)})  # fmt: skip


def nested_provider(folder: Path) -> None:
    rows = [{"provider": {"id": arm}, "response": {"output": "4", "tokenUsage": {"total": 10}},
             "success": right(arm, i), "latencyMs": 1200, "testIdx": i}
            for arm in ARMS for i in range(N)]  # fmt: skip
    dump(folder / "out.json", {"evalId": "e", "results": {"version": 3, "results": rows}})


def questions_as_columns(folder: Path) -> None:
    rows = [[arm, *(int(right(arm, i)) for i in range(N))] for arm in ARMS]
    table(folder / "matrix.csv", ["model", *(f"q{i}" for i in range(N))], rows)


def words_of_models(folder: Path) -> None:
    rows = [[f"i{i}", *("pass" if right(arm, i) else "fail" for arm in ARMS)] for i in range(N)]
    table(folder / "wide.csv", ["instance", *ARMS], rows, ";")


def fields_of_models(folder: Path) -> None:
    head = ["question", *(f"{arm}_{name}" for arm in ARMS for name in ("correct", "cost_usd"))]
    rows = [[f"What is {i}?", *(v for arm in ARMS for v in (right(arm, i), 0.5))]
            for i in range(N)]  # fmt: skip
    table(folder / "wide.csv", head, rows)


def percents_with_a_summary(folder: Path) -> None:
    rows = [{"model_name": arm, "id": f"s_{i}", "score": 100.0 * right(arm, i)}
            for arm in ARMS for i in range(N)]  # fmt: skip
    dump(folder / "scores.jsonl", [{"accuracy": 0.5, "total": 40}, *rows])


def inside_a_zip(folder: Path) -> None:
    with zipfile.ZipFile(folder / "runs.zip", "w") as archive:
        for arm in ARMS:
            rows = [{"id": i, "solved": right(arm, i)} for i in range(N)]
            archive.writestr(f"{arm}/run.json", json.dumps({"data": rows}))


def one_file_per_answer(folder: Path) -> None:
    for arm in ARMS:
        for i in range(N):
            dump(folder / arm / f"task_{i}" / "result.json",
                 {"task_id": f"task_{i}", "reward": float(right(arm, i)), "cost": 0.1})  # fmt: skip


def spreadsheet_in_percent(folder: Path) -> None:
    rows = [[f"q{i}", arm, "100%" if right(arm, i) else "0%", "$0.0012"]
            for arm in ARMS for i in range(N)]  # fmt: skip
    table(folder / "sheet.csv", ["Question ID", "Model Name", "Score (%)", "Total Cost ($)"], rows)


def semicolons_and_decimal_commas(folder: Path) -> None:
    rows = [[f"q{i}", arm, "1,0" if right(arm, i) else "0,0", "1,25"]
            for arm in ARMS for i in range(N)]  # fmt: skip
    table(folder / "t.csv", ["id", "model", "score", "latency"], rows, ";")


def tables_inside_a_zip(folder: Path) -> None:
    with zipfile.ZipFile(folder / "runs.zip", "w") as archive:
        for arm in ARMS:
            rows = "".join(f"q{i},{'yes' if right(arm, i) else 'no'}\n" for i in range(N))
            archive.writestr(f"{arm}.csv", "question_id,correct\n" + rows)


def data_frame_by_columns(folder: Path) -> None:
    rows = [(f"q{i}", arm, float(right(arm, i))) for arm in ARMS for i in range(N)]
    names = ("id", "model", "score")
    dump(folder / "t.json", {name: {str(n): row[k] for n, row in enumerate(rows)}
                             for k, name in enumerate(names)})  # fmt: skip


def data_frame_split(folder: Path) -> None:
    rows = [[f"q{i}", arm, float(right(arm, i))] for arm in ARMS for i in range(N)]
    dump(folder / "t.json", {"columns": ["id", "model", "score"], "index": list(range(len(rows))),
                             "data": rows})  # fmt: skip


def tasks_of_models_beside_settings(folder: Path) -> None:
    dump(folder / "results.json", {arm: {
        "tasks": {name: {f"q{i}": int(right(arm, i)) for i in range(N) if i % 2 == half}
                  for half, name in enumerate(("algebra", "chess"))},
        "config": {"temperature": 0},
    } for arm in ARMS})  # fmt: skip


def signed_verdicts(folder: Path) -> None:
    rows = [[f"q{i}", arm, 1 if right(arm, i) else -1] for arm in ARMS for i in range(N)]
    table(folder / "t.csv", ["qid", "system", "verdict"], rows)


def parts_of_questions(folder: Path) -> None:
    # Each sample belongs to one question: it is no repetition.
    rows = [[f"q{i // 4}", f"sample_{i}", arm, int(right(arm, i))]
            for arm in ARMS for i in range(N)]  # fmt: skip
    table(folder / "t.csv", ["question_id", "sample_id", "model", "score"], rows)


def one_column_spelled_in_two_ways(folder: Path) -> None:
    for arm, name in zip(ARMS, ("pass@1", "Pass@1"), strict=True):
        rows = [{"id": i, "model": arm, "task": "a", name: float(right(arm, i))} for i in range(N)]
        dump(folder / f"{arm}.jsonl", rows)


LAYOUTS = (
    spreadsheet_in_percent, semicolons_and_decimal_commas, tables_inside_a_zip,
    data_frame_by_columns, data_frame_split, tasks_of_models_beside_settings, signed_verdicts,
    parts_of_questions, one_column_spelled_in_two_ways,
    attempts_per_id, trials_with_lists, map_per_task_file, nested_provider, questions_as_columns,
    words_of_models, fields_of_models, percents_with_a_summary, inside_a_zip, one_file_per_answer,
)  # fmt: skip


@pytest.mark.parametrize("make", LAYOUTS)
def test_accuracies_of_unknown_layouts(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path)
    found = read_results(tmp_path)
    means = found.table.group_by("arm").aggregate([("score", "mean"), ("score", "count")])
    for row in means.to_pylist():
        arm = next(one for one in ARMS if one in row["arm"])
        assert (row["score_mean"], row["score_count"]) == (pytest.approx(SHARES[arm]), N)
    assert means.num_rows == len(ARMS)


@pytest.mark.parametrize(
    "head",
    [
        "{}_ok,{}_usd", "{}_right,{}_dollars", "ok {},usd {}", "{}_hit,{}_paid", "hit {},paid {}",
        "{}_pass,{}_certainty",
    ],
)  # fmt: skip
def test_a_second_figure_of_each_model_is_no_model(head: str, tmp_path: Path) -> None:
    """Costs were read as the scores of further models, whatever word their columns end with."""
    names = [part for arm in ("a", "b") for part in head.replace("{}", arm).split(",")]
    rows = [
        [f"q{i}", *(part for arm in ARMS for part in (int(right(arm, i)), 0.001 + i / 1e4))]
        for i in range(N)
    ]
    table(tmp_path / "wide.csv", ["key", *names], rows)
    found = shares(read_results(tmp_path))
    assert sorted(found.values()) == sorted(round(share, 12) for share in SHARES.values())


def test_blanks_around_a_header_need_not_be_typed(tmp_path: Path) -> None:
    """`--map` trims its words, and no word of it found the column."""
    rows = [[arm, f"q{i}", int(right(arm, i))] for arm in ARMS for i in range(N)]
    table(tmp_path / "t.csv", ["who answers ", "Prompt Text", " fine?"], rows)
    mapping = {"arm": "who answers", "question": "Prompt Text", "score": "fine?"}
    assert shares(read_results(tmp_path, mapping=mapping)) == pytest.approx(SHARES)


def test_parts_of_questions_are_questions_and_no_samples(tmp_path: Path) -> None:
    parts_of_questions(tmp_path)
    found = read_results(tmp_path).table
    assert len(set(found.column("question").to_pylist())) == N
    assert set(found.column("sample").to_pylist()) == {0}


def test_costs_with_a_sign_and_latencies_with_a_comma_are_numbers(tmp_path: Path) -> None:
    spreadsheet_in_percent(tmp_path)
    assert set(read_results(tmp_path).table.column("cost_usd").to_pylist()) == {0.0012}
    semicolons_and_decimal_commas(tmp_path)
    path = tmp_path / "t.csv"
    assert set(read_results(path).table.column("latency_s").to_pylist()) == {1.25}
    # Beside nothing but such numbers, a comma before three digits is that of thousands.
    table(path, ["id", "model", "score", "tokens_out"],
          [[f"q{i}", arm, 1, "1,250"] for arm in ARMS for i in range(N)], ";")  # fmt: skip
    found = read_results(path).table
    assert set(found.column("completion_tokens").to_pylist()) == {1250.0}


def test_rows_that_are_cut_short_are_counted(tmp_path: Path) -> None:
    lines = [f"q{i},{arm},{int(right(arm, i))},0.1" for arm in ARMS for i in range(N)]
    lines[5] = "q5,gpt-4o"
    (tmp_path / "t.csv").write_text("\n".join(["id,model,score,cost", *lines]))
    page = audit_path(tmp_path)
    one = next(f for f in page.findings if f.kind == "incomplete")
    assert (one.count, one.severity) == (1, "doubt")
    assert "end before the last column" in one.says
    assert one.rows == ({"at": "t.csv, row 6"},)


def test_a_truth_that_never_varies_is_a_question(tmp_path: Path) -> None:
    rows = [{"model": arm, "id": i, "success": True} for arm in ARMS for i in range(N)]
    dump(tmp_path / "calls.jsonl", rows)
    assert any("only that there is one" in one for one in read_results(tmp_path).questions)


def test_a_stricter_list_of_successes_is_a_question(tmp_path: Path) -> None:
    ids = [f"i{n}" for n in range(9)]
    dump(tmp_path / "gpt-4o.json", {"passed_ids": ids[:6], "fast_ids": ids[:2],
         "failed_ids": ids[6:]})  # fmt: skip
    found = read_results(tmp_path)
    assert any("fast_ids" in one for one in found.questions)
    # Where the file states the share, the list that gives it is the right one.
    dump(tmp_path / "gpt-4o.json", {"passed_ids": ids[:6], "fast_ids": ids[:2],
         "failed_ids": ids[6:], "score": 22.22, "total_instances": 9})  # fmt: skip
    assert sum(read_results(tmp_path).table.column("score").to_pylist()) == 2


def test_answers_that_are_missing_from_all_lists_are_wrong_and_said(tmp_path: Path) -> None:
    for arm, have in (("gpt-4o", 9), ("qwen-7b", 6)):
        dump(tmp_path / f"{arm}.json", {"resolved_ids": ["i0"],
             "unresolved_ids": [f"i{n}" for n in range(1, have)],
             "total_instances": 9})  # fmt: skip
    found = read_results(tmp_path)
    rows = [row for row in found.table.to_pylist() if row["arm"] == "qwen-7b"]
    assert sum(row["status"] == "unanswered" for row in rows) == 3
    assert sum(row["score"] for row in rows) / len(rows) == 1 / 9
    assert any("qwen-7b lists 6 of the 9 questions" in note.says for note in found.notes)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("deep.json", b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
        ("cut.json", b'[{"model": "a", "id": 1, "sco'),
        ("latin.json", b'[{"model": "na\xefve", "id": 1}]'),
        ("empty.json", b""), ("null.json", b"null"), ("list.json", b"[[[[]]]]"),
        ("endless.json", b'[{"model":"a","id":1,"score":1e999},{"id":2,"score":-1e999}]'),
        ("huge.json", b'[{"model":"a","id":1,"score":' + b"9" * 4000 + b'},{"model":"b","id":1}]'),
        ("torn.csv", b'model,id,score\n"a,1,1\n'), ("no.parquet", b"PAR1"),
        ("no.zip", b"PK\x03\x04"),
        ("bad.yaml", b"a: &x [*x, *x]\n"), ("cycle.yml", b"- !!python/object:os.system x\n"),
    ],
)  # fmt: skip
def test_hostile_files_end_in_a_named_error(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RouteyardError) as error:
        read_results(tmp_path / name)
    assert error.value.where


def test_a_bomb_and_a_link_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", b"0" * 80_000_000)
    with pytest.raises(RouteyardError, match="unfolds to more than"):
        read_results(tmp_path / "bomb.zip")
    (folder := tmp_path / "runs").mkdir()
    (folder / "a.json").symlink_to(tmp_path / "bomb.zip")
    with pytest.raises(SourceError, match="link leads out"):
        read_results(folder)


def test_aggregates_beside_answers_are_left_out(tmp_path: Path) -> None:
    words_of_models(tmp_path)
    dump(tmp_path / "summary.json", {"gsm": {"acc": 0.4, "acc_stderr": 0.1},
         "law": {"acc": 0.5, "acc_stderr": 0.1}})  # fmt: skip
    assert read_results(tmp_path).table.num_rows == 2 * N
    (tmp_path / "wide.csv").unlink()
    with pytest.raises(AggregatesOnly):
        read_results(tmp_path)


def _table(folder: Path, rows: list[tuple[str, str, float]]) -> Path:
    folder.mkdir()
    lines = [f"{model},{question},{score:g}" for model, question, score in rows]
    (folder / "r.csv").write_text("\n".join(["model,question_id,score", *lines]) + "\n")
    return folder


def test_scores_on_no_known_scale_and_answers_that_only_some_have_twice_are_said(
    tmp_path: Path,
) -> None:
    keys = [(m, f"q{n}") for n in range(30) for m in ("gpt-4", "llama-3-8b")]
    with pytest.raises(SourceError, match=r"'score' is called a score .*-1, 7"):
        read_results(_table(tmp_path / "scale", [(m, q, -1 if m < "h" else 7) for m, q in keys]))
    rows = [(m, q, float(n % 3 == 0)) for n, (m, q) in enumerate(keys)]
    kinds = {note.kind for note in read_results(_table(tmp_path / "some", rows + rows[:9])).notes}
    assert "repeated" in kinds
    kinds = {note.kind for note in read_results(_table(tmp_path / "samples", rows + rows)).notes}
    assert "question" in kinds
    assert "repeated" not in kinds
