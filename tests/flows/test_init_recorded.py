"""`routeyard init` beside answers that exist: they are no questions, and come in as recordings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from routeyard.flows.cli import run
from routeyard.flows.new_recipe.write import start_recipe
from routeyard.flows.recipe import load
from routeyard.flows.recipe_check import faults
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.mapping import compile_field
from routeyard.pipelines.ingest.guess_scorers import answers_of, suggest
from tests.ingest.importers.made import write_csv as table

QUESTIONS = [
    {"item": f"gsm-#{i}", "Problem Text": f"What is {i} + {i}?", "GT": f"# {2 * i}"}
    for i in range(8)
]
ANSWERS = [
    {"item": q["item"], "LLM name": model, "answer text": f"It is {q['GT'][2:]}.", "in_tok": 9,
     "out_tok": 5, "price paid ($)": 0.001}
    for model in ("big", "small") for q in QUESTIONS
]  # fmt: skip
#: RouteLLM's and EmbedLLM's layouts, a name that is part of another, and an empty cell.
WIDE = [
    {"query_id": f"arc-{i}", "question": f"Which of these is number {i}, and why?",
     "split": "test", "score:m-1": i / 8, "score:m-10": "" if i == 3 else 1.0 - i / 8}
    for i in range(8)
]  # fmt: skip


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (ANSWERS, "'LLM name' names models (big, small)"),
        # One model first: ids differ in all rows that are looked at.
        (ANSWERS[:8], "'LLM name' names models (big)"),
        ([{"question_id": i, "model": "m", "output": f"It is {i}, I think."} for i in range(8)],
         "text: output"),
        # The question repeated for every model.
        ([{"question": f"What is {i} + {i}?", "model": m, "response": str(2 * i)}
          for m in "ab" for i in range(8)], "text: response"),
    ],
)  # fmt: skip
def test_answers_are_not_taken_for_questions(
    rows: list[dict[str, Any]], says: str, tmp_path: Path
) -> None:
    path = lines(tmp_path / "runs.jsonl", rows)
    with pytest.raises(BadInput, match="recorded answers, not questions") as caught:
        start_recipe(tmp_path / "r.yaml", str(path), fields={})
    assert says in str(caught.value)
    assert "--recording" in str(caught.value)
    assert not (tmp_path / "r.yaml").exists()


def test_a_folder_whose_most_files_are_answers_says_what_lies_beside_them(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    table(folder / "questions.csv", QUESTIONS)
    lines(folder / "runs.jsonl", ANSWERS * 9)
    with pytest.raises(BadInput, match=r"beside it are questions\.csv"):
        start_recipe(tmp_path / "r.yaml", str(folder), fields={})


def test_questions_that_a_model_wrote_are_questions(tmp_path: Path) -> None:
    rows = [{"question": f"What is {i} + 1?", "answer": str(i + 1), "model": "writer"}
            for i in range(8)]  # fmt: skip
    done = start_recipe(tmp_path / "r.yaml", str(lines(tmp_path / "q.jsonl", rows)), fields={})
    assert done.guess.fields["references"] == "answer"
    # A person who names the question knows better.
    repeated = lines(tmp_path / "t.jsonl", [*rows, *rows])
    done = start_recipe(tmp_path / "s.yaml", str(repeated), fields={"question": "question"})
    assert done.guess.fields["question"] == "question"


def test_a_recording_fills_the_pool_and_finds_the_questions_id(tmp_path: Path) -> None:
    questions = table(
        tmp_path / "the questions.csv", [{"a": i, **q} for i, q in enumerate(QUESTIONS)]
    )
    answers = table(tmp_path / "the runs.csv", ANSWERS)
    recipe = tmp_path / "r.yaml"
    words = ["init", str(recipe), "--from", str(questions), "--recording", str(answers)]
    assert run(words) == 0
    checked, _ = load(str(recipe))
    assert [m.model_id for m in checked.pool.models] == ["big", "small"]
    assert checked.sources[0].fields is not None
    assert checked.sources[0].fields.id == "item"
    assert checked.sources[0].scorer == "numeric"
    (entry,) = checked.collect.recorded
    assert entry.fields.model_dump(exclude_none=True) == {
        "query": "item", "model": "LLM name", "text": "answer text", "prompt_tokens": "in_tok",
        "completion_tokens": "out_tok", "cost_usd": "price paid ($)",
    }  # fmt: skip
    assert faults(str(recipe)) == []


def test_rows_that_state_question_options_and_answer_are_both(tmp_path: Path) -> None:
    rows = [
        {"Frage": f"Which is {i}?", "Optionen": f"A) {i}|B) {i + 7}|C) {i + 9}",
         "Musterlösung": "A" if i or model == "gpt-4o" else "B", "Modell": model,
         "Antwort": f"It is {i + 7 * (model == 'gpt-4o-mini')}.", "tok_out": i + 3,
         "host": model[:3]}
        for i in range(12) for model in ("gpt-4o", "gpt-4o-mini", "claude-3-haiku")
    ]  # fmt: skip
    answers = table(tmp_path / "runs.csv", rows)
    recipe = tmp_path / "r.yaml"
    done = start_recipe(recipe, str(answers), fields={}, recording=str(answers))
    assert done.lacks == [
        "your word: 1 of 12 questions have several 'Musterlösung'; the one that most answers have "
        "is taken"
    ]
    asked = (tmp_path / "r-data" / "runs.jsonl").read_text("utf-8").splitlines()
    assert json.loads(asked[0]) == {
        "Frage": "Which is 0?", "Optionen": "A) 0|B) 7|C) 9", "Musterlösung": "B"}  # fmt: skip
    assert done.scorer.scorer == "mcq"
    assert faults(str(recipe)) == []
    # A column of any name is theirs where it is named, or is the question by what it holds.
    odd = table(tmp_path / "o.csv", [{"col1" if k == "Frage" else k: v for k, v in row.items()}
                                     for row in rows])  # fmt: skip
    start_recipe(tmp_path / "o.yaml", str(odd), fields={"question": "col1"}, recording=str(odd))
    (entry,) = load(str(tmp_path / "o.yaml"))[0].collect.recorded
    assert entry.fields.query == "col1"
    # Without a column that says which row is of which question nothing is made up.
    nameless = table(tmp_path / "n.csv", [{k: r[k] for k in ("Modell", "Antwort")} for r in rows])
    with pytest.raises(BadInput, match="no column of the answers names their question"):
        start_recipe(tmp_path / "n.yaml", str(nameless), fields={}, recording=str(nameless))


def test_an_id_that_only_the_recording_tells(tmp_path: Path) -> None:
    questions = lines(
        tmp_path / "q.jsonl",
        [{"nr": i, "urn": f"x:{i} of 8 in all", "question": f"{i} + 1?", "answer": str(i + 1)}
         for i in range(8)],
    )  # fmt: skip
    rows = [{"query": f"x:{i} of 8 in all", "model": "m", "output": str(i + 1)} for i in range(8)]
    answers = lines(tmp_path / "a.jsonl", rows)
    done = start_recipe(tmp_path / "r.yaml", str(questions), fields={}, recording=str(answers))
    assert done.guess.fields["id"] == "urn"
    assert done.lacks == []
    assert faults(str(tmp_path / "r.yaml")) == []
    # Nothing of the questions is named: said, not made up.
    lines(answers, [{**row, "query": f"other-{i}"} for i, row in enumerate(rows)])
    done = start_recipe(tmp_path / "s.yaml", str(questions), fields={}, recording=str(answers))
    assert "no column of the questions holds the values" in done.lacks[0]


def test_rows_of_a_recording_that_name_no_model_are_counted(tmp_path: Path) -> None:
    # The pool left them out without a word, and the build stopped at the first.
    rows = [{**row} for row in ANSWERS]
    for number in (1, 9, 10, 14):
        rows[number]["LLM name"] = ""
    rows[3]["item"] = ""
    questions, answers = table(tmp_path / "q.csv", QUESTIONS), table(tmp_path / "runs.csv", rows)
    recipe = tmp_path / "r.yaml"
    done = start_recipe(recipe, str(questions), fields={}, recording=str(answers))
    assert done.lacks == [
        "4 of 16 rows of the recording name no model in 'LLM name' (row 2 of runs.csv, row 10 "
        "of runs.csv, row 11 of runs.csv and 1 more): give them one, or take them out; a build "
        "stops at them",
        "1 of 16 rows of the recording name no question in 'item' (row 4 of runs.csv): give "
        "them one, or take them out; a build stops at them",
    ]
    assert "# LACKS: 4 of 16 rows of the recording name no model" in recipe.read_text()
    assert "a row names no model" in str(faults(str(recipe))[0])


def test_a_waiver_names_the_columns_that_may_hold_what_it_waives(tmp_path: Path) -> None:
    odd = [
        {"item": row["item"], "LLM name": row["LLM name"], "answer text": row["answer text"],
         "tok_a": 9, "tok_b": 5, "dollar_x": 0.001, "dollar_y": 0.002} for row in ANSWERS
    ]  # fmt: skip
    questions, answers = table(tmp_path / "q.csv", QUESTIONS), table(tmp_path / "runs.csv", odd)
    done = start_recipe(tmp_path / "r.yaml", str(questions), fields={}, recording=str(answers))
    reasons = {waiver["gate"]: waiver["reason"] for waiver in done.waivers}
    assert "tok_a, tok_b look like counts of tokens" in reasons["metering:usage_missing"]
    assert "dollar_x, dollar_y look like costs" in reasons["metering:price_unknown"]


@pytest.mark.parametrize("layout", ["prefix", "plain", "no id"])
def test_scores_beside_the_questions_become_a_recipe_that_builds(
    layout: str, tmp_path: Path
) -> None:
    rows = WIDE
    if layout != "prefix":
        rows = [
            {
                "prompt": row["question"],
                "gpt-4-1106": i % 2 == 0,
                "mixtral-8x7b": "" if i == 4 else i % 3 == 0,
            }
            for i, row in enumerate(WIDE)
        ]
    if layout == "plain":  # with a reference too, which no rule can compare with anything
        rows = [{"id": i, "answer": f"because {i}", **row} for i, row in enumerate(rows)]
    path = table(tmp_path / "wide.csv", rows)
    recipe = tmp_path / "r.yaml"
    done = start_recipe(recipe, str(path), fields={})
    assert done.lacks == []
    assert done.scorer.scorer == "given"
    # The one column without a gap is a model's, and not the answers.
    assert ("reference" in done.guess.fields) == (layout == "plain")
    models = ["m-1", "m-10"] if layout == "prefix" else ["gpt-4-1106", "mixtral-8x7b"]
    assert [m.model_id for m in load(str(recipe))[0].pool.models] == models
    notes: list[str] = []
    assert faults(str(recipe), notes) == []
    if layout == "prefix":  # an empty cell is no score, and no zero
        assert "responses.parquet: 1 rows hold neither text nor score: missing answers" in notes
        yard = tmp_path / "yard"
        assert run(["build", str(recipe), "--until", "label", "-w", str(yard)]) == 0
        (labels,) = yard.glob("stages/label/*/labels.parquet")

        scores = {r["score"] for r in pq.read_table(labels).to_pylist() if r["model_id"] == "m-1"}
        assert scores == {i / 8 for i in range(8)}


def test_one_column_of_numbers_is_no_table_of_scores(tmp_path: Path) -> None:
    rows = [{"question": f"Which number follows {i}?", "difficulty": i / 8, "is_hard": i % 2,
             "answer": str(i + 1)} for i in range(8)]  # fmt: skip
    done = start_recipe(tmp_path / "r.yaml", str(lines(tmp_path / "q.jsonl", rows)), fields={})
    assert done.scorer.scorer == "numeric"


def test_a_scorer_is_tried_on_what_a_model_would_say() -> None:
    asked = [f"{i} and {i}?" for i in range(20)]
    names = ["Paris", "Rome", "Oslo", "Bonn"] * 5
    for marker in ("# ", "#### ", "Answer: "):
        numbers = suggest(asked, [[f"{marker}{7 * i}"] for i in range(20)], [[]] * 20)
        assert (numbers.scorer, numbers.right) == ("numeric", 20)
        # `em` compares the marker as well: nothing that a model says is right by it.
        found = suggest(asked, [[f"{marker}{name}"] for name in names], [[]] * 20)
        assert found.scorer != "em"


def test_units_and_scales_of_a_recording_are_those_of_any_results(tmp_path: Path) -> None:
    rows = [{"item": q["item"], "model": m, "output": "4", "percent": 100 * (i % 2), "score":
             100 * (i % 2), "latency_ms": 1500, "cost_cents": 2, "stop_reason": "length"}
            for m in ("big", "small") for i, q in enumerate(QUESTIONS)]  # fmt: skip
    questions, answers = table(tmp_path / "q.csv", QUESTIONS), table(tmp_path / "runs.csv", rows)
    start_recipe(tmp_path / "r.yaml", str(questions), fields={}, recording=str(answers))
    checked, _ = load(str(tmp_path / "r.yaml"))
    fields = checked.collect.recorded[0].fields.model_dump(exclude_none=True)
    read = {name: compile_field(str(of), where="test")(rows[1]) for name, of in fields.items()}
    assert (read["score"], read["latency_s"], read["cost_usd"]) == (1.0, 1.5, 0.02)
    assert (read["finish_reason"], read["query"]) == ("length", "gsm-#1")
    assert faults(str(tmp_path / "r.yaml")) == []
    # Without a column that names the question, that is what the recipe lacks.
    nameless = [{k: v for k, v in row.items() if k != "item"} for row in rows]
    answers = table(tmp_path / "n.csv", nameless)
    done = start_recipe(tmp_path / "n.yaml", str(questions), fields={}, recording=str(answers))
    assert "names the question: fields.query" in done.lacks[0]


def test_a_column_called_state_that_says_no_status_is_left_out() -> None:
    rows = [{"id": f"q{i}", "model": m, "output": f"{m} {i}", "state": "CA"}
            for i in range(8) for m in "ab"]  # fmt: skip
    assert answers_of(rows) == {"model": "model", "query": "id", "text": "output"}
    ended = [{**row, "state": "ok"} for row in rows]
    assert (answers_of(ended) or {})["status"] == "state"
