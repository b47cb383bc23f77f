"""`routeyard init`: tables become recipes that can be built; what it cannot know it says."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import routeyard
from routeyard.flows.cli import run
from routeyard.flows.new_recipe.write import start_recipe
from routeyard.flows.recipe import load
from routeyard.flows.recipe_check import faults
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.ingest import ingest
from tests.flows.model_endpoint import endpoint

CAPITALS = {"France": "Paris", "Italy": "Rome", "Norway": "Oslo", "Greece": "Athens",
            "Poland": "Warsaw", "Portugal": "Lisbon"}  # fmt: skip
Rows = list[dict[str, Any]]

#: name → (rows, file ending, scorer, references of the first question)
CASES: dict[str, tuple[Rows, str, str, list[str]]] = {
    "plain": (
        [{"question": f"Capital of {k}?", "answer": v} for k, v in CAPITALS.items()],
        "csv", "em", ["Paris"],
    ),
    "gsm": (
        [{"question": f"{i} apples and {i} more?", "answer": f"{i}+{i}\n#### {2 * i}"}
         for i in range(1, 9)],
        "jsonl", "numeric", ["2"],
    ),
    # No model writes the sign: a scorer that compares it calls every answer wrong.
    "marked": (
        [{"item": f"gsm-{i}", "Problem Text": f"{i} apples and {i} more?", "GT": f"# {2 * i}"}
         for i in range(1, 9)],
        "csv", "numeric", ["2"],
    ),
    "option_columns": (
        [{"Question": f"What is {i} + 1?", "A": str(i), "B": str(i + 1), "C": "0", "Answer": "B"}
         for i in range(1, 9)],
        "csv", "mcq", ["B"],
    ),
    "index_from_one": (
        [{"stem": f"Which is {i} doubled?", "options": [str(2 * i), "7", "9"], "label": 1 + i % 3}
         for i in range(1, 9)],
        "parquet", "mcq", ["B"],
    ),
    "index_from_zero": (
        [{"stem": f"Which is {i} doubled?", "options": [str(2 * i), "7", "9"], "label": i % 3}
         for i in range(1, 9)],
        "parquet", "mcq", ["B"],
    ),
    "text_of_the_option": (
        [{"query": f"Which is {i} doubled?", "options": json.dumps([str(i), str(2 * i)]),
          "correct answer": str(2 * i)} for i in range(1, 9)],
        "csv", "mcq", ["B"],
    ),
    "code": (
        [{"task_id": f"t/{i}", "prompt": f"Write add{i}(x).", "canonical_solution": "…",
          "test_list": [f"assert add{i}(1) == {i + 1}"]} for i in range(6)],
        "jsonl", "code", ["assert add0(1) == 1"],
    ),
    "german": (
        [{"Nr": i, "Frage": f"Wie viel ist {i} mal 2?", "Antwort": str(2 * i)} for i in range(6)],
        "csv", "numeric", ["0"],
    ),
    "chinese": (
        [{"编号": i, "问题": f"{k}的首都是哪里？（第{i}题）", "答案": v}
         for i, (k, v) in enumerate(CAPITALS.items())],
        "jsonl", "em", ["Paris"],
    ),
    "odd_names": (
        [{"col1": i, "the_user_text": f"In which year did event {i} happen?",
          "zz": str(1900 + i * i)} for i in range(6)],
        "csv", "numeric", ["1900"],
    ),
    "boxed": (
        [{"problem": f"Simplify x^{i + 2} / x.", "solution": f"It is \\boxed{{x^{{{i + 1}}}}}."}
         for i in range(6)],
        "json", "math", ["x^{1}"],
    ),
}  # fmt: skip


def write(folder: Path, name: str) -> Path:
    rows, ending, *_ = CASES[name]
    path = folder / f"{name}.{ending}"
    if ending == "csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            sign = ";" if name == "german" else ","
            writer = csv.DictWriter(file, list(rows[0]), delimiter=sign)
            writer.writeheader()
            writer.writerows(rows)
    elif ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif ending == "json":
        path.write_text(json.dumps({"version": 1, "data": rows}, indent=2))
    else:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", CASES)
def test_a_table_becomes_a_recipe_without_a_fault(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name)
    recipe = tmp_path / "recipes" / "mine.yaml"
    done = start_recipe(recipe, str(path), fields={})
    rows, _, scorer, first = CASES[name]
    assert done.lacks == []
    assert faults(str(recipe)) == []
    checked, base = load(str(recipe))
    assert checked.sources[0].scorer == scorer
    queries = ingest(checked.sources, base=base).queries.to_pylist()
    assert len(queries) == len(rows)
    assert queries[0]["references"] == first
    assert done.scorer.right == done.scorer.tried
    assert done.scorer.wrong == 0


def test_what_cannot_be_known_is_said_and_not_made_up(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    story = [{"question": f"Tell me a story about {k}."} for k in CAPITALS]
    path.write_text("".join(json.dumps(row) + "\n" for row in story))
    done = start_recipe(tmp_path / "a.yaml", str(path), fields={})
    assert done.scorer.scorer == "none"
    assert "no column holds the answers" in done.lacks[0]
    assert "LACKS: no column holds the answers" in done.recipe.read_text()
    # Neither 0 nor 3 occurs: it may count from either, and a wrong guess mislabels every row.
    rows = [{"question": f"Which of these is it, {i}?", "options": ["a", "b", "c"], "label": 1}
            for i in range(6)]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = start_recipe(tmp_path / "b.yaml", str(path), fields={})
    assert "from 0 or from 1" in done.lacks[0]


#: name → (rows, question, references and scorer, or what is lacking)
SHAPES: dict[str, tuple[Rows, str, list[str], str] | str] = {
    # Without its passage the question cannot be answered.
    "passage": (
        [{"passage": f"The {k} team has won {i} games.", "question": "How many games were won?",
          "answer": str(i)} for i, k in enumerate(CAPITALS)],
        "The France team has won 0 games.\n\nHow many games were won?", ["0"], "numeric",
    ),
    "nested": (
        [{"question": {"text": f"Capital of {k}?", "tokens": []},
          "answers": [{"text": v, "tokens": []}, {"text": v.lower(), "tokens": []}]}
         for k, v in CAPITALS.items()],
        "Capital of France?", ["Paris", "paris"], "em",
    ),
    "labelled_options": (
        [{"question": f"Which is {i} doubled?", "answerKey": "2",
          "choices": {"text": [str(i), str(2 * i)], "label": ["1", "2"]}} for i in range(1, 9)],
        "Which is 1 doubled?", ["B"], "mcq",
    ),
    "single_in_a_list": (
        [{"query": f"Which is {i} doubled?", "choices": ["9", str(2 * i)], "gold": [i % 2]}
         for i in range(1, 9)],
        "Which is 1 doubled?", ["B"], "mcq",
    ),
    "endings": (
        [{"sent": f"Which is {i} doubled, please?", "ending0": "9", "ending1": str(2 * i),
          "ending2": "x", "label": i % 3} for i in range(9)],
        "Which is 0 doubled, please?", ["A"], "mcq",
    ),
    "unit": (
        [{"question": f"{i} apples and {i} more?", "answer": f"{2 * i} (apples)"}
         for i in range(1, 9)],
        "1 apples and 1 more?", ["2"], "numeric",
    ),
    "truth": (
        [{"question": f"Is {i} even?", "answer": i % 2 == 0} for i in range(8)],
        "Is 0 even?", ["yes"], "auto",
    ),
    "yes_or_no": (
        [{"question": f"is {i} more than 3", "label": int(i > 3)} for i in range(8)],
        "is 0 more than 3", ["no"], "auto",
    ),
    "numbered": (
        [{"Ticket No": f"T-{i}", "Customer question": f"How many is {i} and {i}?",
          "Expected answer": str(2 * i), "Department": "ab"[i % 2], "Remark": "?"}
         for i in range(1, 9)],
        "How many is 1 and 1?", ["2"], "numeric",
    ),
    "kinds": (
        [{"question": f"Riddle {i}, who or what is it?", "answer": a}
         for i, a in enumerate(["12", "yes", "(B)", "7.5", "no", "(A)", "True", "3"])],
        "Riddle 0, who or what is it?", ["12"], "auto",
    ),
    "gap": (
        [{"question": f"Capital of {k}?", **({"answer": v} if k != "Italy" else {})}
         for k, v in CAPITALS.items()],
        "Capital of France?", ["Paris"], "em",
    ),
    "chat": "no column holds the answers",
    "classes": "mean classes",
    "several": "several questions a row",
}  # fmt: skip
LACKING: dict[str, Rows] = {
    "chat": [{"messages": [{"role": "user", "content": f"Tell me about {k}, please."},
                           {"role": "assistant", "content": "…"}]} for k in CAPITALS],
    "classes": [{"question": f"Of which kind is {i}?", "label": int(i > 3)} for i in range(8)],
    "several": [{"questions": ["How many?", "And who?"], "background": f"Story {i}.",
                 "answers": ["1", "2"]} for i in range(4)],
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_of_columns(name: str, tmp_path: Path) -> None:
    wanted = SHAPES[name]
    rows = LACKING[name] if isinstance(wanted, str) else wanted[0]
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = start_recipe(tmp_path / "a.yaml", str(path), fields={})
    if isinstance(wanted, str):
        assert any(wanted in one for one in done.lacks), done.lacks
        return
    assert done.lacks == []
    checked, base = load(str(done.recipe))
    first = ingest(checked.sources, base=base).queries.to_pylist()[0]
    assert first["question"] == wanted[1]
    assert first["references"] == wanted[2]
    assert checked.sources[0].scorer == wanted[3]
    assert (done.scorer.right, done.scorer.wrong) == (done.scorer.tried, 0)
    if name == "numbered":
        assert (first["source_id"], first["task"]) == ("T-1", "b")
        assert done.guess.unused == ["Remark"]
        assert "# Columns that are not used: Remark." in done.recipe.read_text()


def test_wrong_options_are_mixed_with_the_right_one(tmp_path: Path) -> None:
    # The right one first in every row would be a benchmark of the letter A.
    rows = [{"question": f"Capital of {k}?", "correct_answer": v, "distractor1": f"not {v}",
             "distractor2": "Lyon", "distractor3": "Bonn"}
            for k, v in CAPITALS.items()]  # fmt: skip
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = start_recipe(tmp_path / "a.yaml", str(path), fields={})
    checked, base = load(str(done.recipe))
    queries = ingest(checked.sources, base=base).queries.to_pylist()
    right = [q["choices"]["ABCD".index(q["references"][0])] for q in queries]
    assert sorted(right) == sorted(CAPITALS.values())
    assert len({q["references"][0] for q in queries}) > 1
    assert checked.sources[0].scorer == "mcq"


#: Options as objects: name → (options, the answer); the texts are Paris and Rome, in that order.
OBJECTS: dict[str, tuple[Any, str]] = {
    "letters": ({"A": "Paris", "B": "Rome"}, "A"),
    "small": ({"a": "Paris", "b": "Rome"}, "a"),
    "other_letters": ({"P": "Paris", "Q": "Rome"}, "P"),
    # Trap: the second letter stands first, and options are asked in the order they stand.
    "out_of_order": ({"B": "Paris", "A": "Rome"}, "B"),
    "entries": ([{"key": "1", "text": "Paris"}, {"key": "2", "text": "Rome"}], "1"),
    "entries_by_text": ([{"label": "x", "text": "Paris"}, {"label": "y", "text": "Rome"}], "Paris"),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_options_that_are_objects_are_taken_by_their_texts(name: str, tmp_path: Path) -> None:
    options, gold = OBJECTS[name]
    rows = [{"question": f"Where is the Louvre, asked {i}?", "options": options, "answer": gold}
            for i in range(6)]  # fmt: skip
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = start_recipe(tmp_path / "a.yaml", str(path), fields={})
    assert done.lacks == []
    checked, base = load(str(done.recipe))
    query = ingest(checked.sources, base=base).queries.to_pylist()[0]
    assert (query["choices"], query["references"]) == (["Paris", "Rome"], ["A"])


def test_options_that_are_objects_of_objects_are_said(tmp_path: Path) -> None:
    rows = [{"question": f"Where is the Louvre, asked {i}?", "answer": "Paris",
             "options": {"A": {"is": ["Paris"]}, "B": {"is": ["Rome"]}}}
            for i in range(6)]  # fmt: skip
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = start_recipe(tmp_path / "a.yaml", str(path), fields={})
    assert any("'options', whose options are objects" in one for one in done.lacks)
    assert "choices" not in done.guess.fields


def test_a_hole_among_the_options_is_said_before_a_build_finds_it(tmp_path: Path) -> None:
    rows = [{"question": f"Where is the Louvre, asked {i}?", "answer": "C",
             "options": ["Rome", None if i == 3 else "Bonn", "Paris", None]}
            for i in range(6)]  # fmt: skip
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = start_recipe(tmp_path / "a.yaml", str(path), fields={})
    assert any("1 of 6 rows have an option without a text" in one for one in done.lacks)


@pytest.mark.parametrize("given", [None, "item.words"])
def test_a_question_within_an_object_is_found_or_named(given: str | None, tmp_path: Path) -> None:
    key = "text" if given is None else "words"
    rows = [{"item": {key: f"Capital of {k}?"}, "options": {"A": v, "B": "Bonn"}, "gold": ["A"]}
            for k, v in CAPITALS.items()]  # fmt: skip
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    named = {} if given is None else {"question": given}
    done = start_recipe(tmp_path / "a.yaml", str(path), fields=named)
    assert done.lacks == []
    checked, base = load(str(done.recipe))
    query = ingest(checked.sources, base=base).queries.to_pylist()[0]
    assert (query["question"], query["choices"]) == ("Capital of France?", ["Paris", "Bonn"])
    assert query["references"] == ["A"]


def test_without_a_question_the_answers_are_still_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"item": {"n": i}, "gold": ["Rome"]} for i in range(6)]
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(["init", str(tmp_path / "a.yaml"), "--from", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "no column looks like questions" in shown
    # Trap: it named the references and said in the same breath that no column holds the answers.
    assert "no column holds the answers" not in shown
    assert "next: add fields.question to the recipe" in shown


@pytest.mark.parametrize(("part", "known"), [("aliases", True), ("spans", False)])
def test_the_parts_of_a_nested_answer_are_not_the_answers(
    part: str, known: bool, tmp_path: Path
) -> None:
    rows = [{"question": f"Capital of {k}?", "answer": {part: [v], "n": 1}}
            for k, v in CAPITALS.items()]  # fmt: skip
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = start_recipe(tmp_path / "a.yaml", str(path), fields={})
    if known:
        checked, base = load(str(done.recipe))
        queries = ingest(checked.sources, base=base).queries.to_pylist()
        assert queries[0]["references"] == ["Paris"]
    else:
        assert "no column holds the answers" in done.lacks[0]


def test_a_person_knows_better(tmp_path: Path) -> None:
    path = write(tmp_path, "plain")
    given = {"question": "answer", "references": "question"}
    done = start_recipe(tmp_path / "a.yaml", str(path), fields=given, scorer="f1")
    assert done.guess.fields["question"] == "answer"
    assert load(str(tmp_path / "a.yaml"))[0].sources[0].scorer == "f1"
    with pytest.raises(BadInput, match="no column 'anwser'"):
        start_recipe(tmp_path / "b.yaml", str(path), fields={"references": "anwser"})
    with pytest.raises(BadInput, match="exists already"):
        start_recipe(tmp_path / "a.yaml", str(path), fields={})


def test_the_pool_comes_from_the_providers_own_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "plain")
    with endpoint(*(f"m{i}" for i in range(9))) as served:
        done = start_recipe(tmp_path / "a.yaml", str(path), fields={}, provider=served.url)
        monkeypatch.setenv("OPENAI_BASE_URL", served.url)
        start_recipe(tmp_path / "b.yaml", str(path), fields={}, models=["m3"])
        with pytest.raises(BadInput, match="lists no model 'm33'"):
            start_recipe(tmp_path / "c.yaml", str(path), fields={}, models=["m33"])
    pool = load(str(tmp_path / "a.yaml"))[0].pool
    assert len(pool.models) == 5
    assert all(model.price_in is None for model in pool.models)  # it lists none: not free
    assert "without a price" in done.pool
    assert [m.model_id for m in load(str(tmp_path / "b.yaml"))[0].pool.models] == ["m3"]


def test_the_command_asks_nothing_without_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, "chinese")
    recipe = tmp_path / "mine.yaml"
    assert run(["init", str(recipe), "--from", str(path)]) == 0
    assert "问题" in capsys.readouterr().out
    assert recipe.is_file()
    assert run(["init", str(tmp_path / "b.yaml")]) == 2
    capsys.readouterr()
    assert run(["plan", str(recipe), "--workspace", str(tmp_path / "yard")]) == 0
    shown = capsys.readouterr().out
    # Dollars of a simulation look like money.
    assert "the pool is SIMULATED: the dollars are made up" in shown
    table = [line for line in shown.splitlines() if "sim-" in line or "tokens out" in line]
    assert len(table) > 2
    assert max(len(line.rstrip()) for line in table) <= 80, table


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_recipe_builds_unedited(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name)
    recipe = tmp_path / "mine.yaml"
    assert run(["init", str(recipe), "--from", str(path)]) == 0
    assert run(["build", str(recipe), "--workspace", str(tmp_path / "yard")]) == 0
    assert (tmp_path / "yard" / "releases" / "mine" / "1.0.0" / "manifest.json").is_file()


def test_questions_and_answers_in_one_place_are_told_apart(tmp_path: Path) -> None:
    questions = [{"id": f"q{i}", "question": f"{i} + 1?", "answer": str(i + 1)} for i in range(4)]
    answers = [{"id": f"q{i}", "model": "m", "output": "2", "tokens": 3} for i in range(8)]
    both = tmp_path / "both.jsonl"
    both.write_text("".join(json.dumps(row) + "\n" for row in [*questions, *answers]))
    with pytest.raises(BadInput, match="rows of different kinds") as caught:
        start_recipe(tmp_path / "r.yaml", str(both), fields={})
    assert "8 of 12 looked at, row 5 first, have id, model, output, tokens" in str(caught.value)
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, rows in (("questions", questions), ("answers", answers)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(BadInput, match=r"questions\.jsonl first"):
        start_recipe(tmp_path / "r.yaml", str(folder), fields={})
    (folder / "answers.jsonl").unlink()
    (folder / "answers.csv").write_text("id\nq1\n")
    done = start_recipe(tmp_path / "r.yaml", str(folder), fields={})
    assert done.unread == ["answers.csv (only *.jsonl files are read)"]
    assert done.guess.fields["question"] == "question"


def test_rows_that_leave_keys_out_are_of_one_kind(tmp_path: Path) -> None:
    rows = [{"question": f"{i} + 1?", "answer": str(i + 1), "level": i} for i in range(6)]
    del rows[2]["level"], rows[4]["answer"]
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert start_recipe(tmp_path / "r.yaml", str(path), fields={}).guess.fields["question"]


def test_empty_cells_of_a_table_are_left_out_and_listed(tmp_path: Path) -> None:
    lines = ["Ref #;Prompt text;Gold;Subject area;Notes"]
    lines += [
        f"Q-{i};How much is {i} and {i}?;{2 * i};sums;{'' if i % 9 else 'seen'}" for i in range(40)
    ]
    lines[5] = lines[5].replace("How much is 4 and 4?", " ")
    lines[9] = "Q-8;How much is 8 and 8?;;;"
    path = tmp_path / "faq.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8-sig")
    done = start_recipe(tmp_path / "a.yaml", str(path), fields={})
    assert done.lacks == []
    assert done.guess.fields == {
        "question": "Prompt text", "references": "Gold", "id": "Ref #", "task": "Subject area",
    }  # fmt: skip
    assert done.left_out == [
        f"1 of 40 rows looked at have no {what} (listed in removals)"
        for what in ("question", "reference")
    ]
    checked, base = load(str(done.recipe))
    made = ingest(checked.sources, base=base)
    assert made.queries.num_rows == 38
    assert [key for key, _, _ in made.removed] == ["faq|Q-4", "faq|Q-8"]


def test_a_folder_of_empty_files_is_refused_by_name(tmp_path: Path) -> None:
    (folder := tmp_path / "data").mkdir()
    (folder / "empty.jsonl").touch()
    with pytest.raises(BadInput, match="has no rows"):
        start_recipe(tmp_path / "recipe.yaml", str(folder), fields={})


def test_the_end_of_a_file_counts_as_its_start_does(tmp_path: Path) -> None:
    # The first 200 rows have numbers alone, and a scorer of numbers called every name wrong.
    rows = [{"question": f"{i} + {i}?", "answer": str(2 * i)} for i in range(300)]
    rows += [{"question": f"Who was number {i}?", "answer": f"Saint Peter {i}"} for i in range(900)]
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = start_recipe(tmp_path / "a.yaml", str(path), fields={})
    assert done.rows == 200
    assert done.scorer.scorer != "numeric"


def test_the_recipe_for_the_simulated_pool_builds(tmp_path: Path) -> None:
    """Trap: simulated models know no such answer; all were undecided, and no release came."""
    recipe = tmp_path / "mine.yaml"
    path = write(tmp_path, "plain")
    assert run(["init", str(recipe), "--from", str(path)]) == 0
    built = routeyard.build(str(recipe), workspace=str(tmp_path / "yard"))
    with routeyard.open_release(built["release"]["path"]) as release:
        labels = release.pandas("labels")
    assert len(labels) == 3 * len(CAPITALS)
    assert labels["score"].notna().all()
