"""Labels that stop a release: undecided answers, and grades that a rule contradicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import yaml

from routeyard.flows.build import run_build
from routeyard.pipelines.audit.labels import LabelGates, label_gates
from routeyard.pipelines.common.errors import GateFailed
from routeyard.pipelines.label.policies import decide
from routeyard.pipelines.label.rules import file_verdicts
from routeyard.pipelines.release.query import SAVED
from routeyard.schemas.recipe import Label, Policy
from tests.support.label_tables import queries, responses
from tests.support.small_recorded import RECIPE

RIGHT, WRONG, UNREAD = "Answer: 4", "Answer: 5", "no idea whatsoever"


def gates(texts: list[str], given: list[float] | None = None, **policy: Any) -> LabelGates:
    """Gates over answers of one model `m` to as many questions of two tasks, all with answer 4."""
    asked = queries(["4"] * len(texts))
    answers = responses({"m": list(texts)}, **({} if given is None else {"m": given}))
    verdicts = file_verdicts(asked, answers)
    section = Label(default=Policy(**policy))
    labels = decide(asked, answers, verdicts, policy=section)
    return label_gates(asked, answers, verdicts, labels, section)


@pytest.mark.parametrize(
    ("unread", "answers", "stops"),
    [
        # One-sided 95 % lower bounds (Clopper-Pearson) of 15, 16 and 16 in 100: 9.5, 10.3 %.
        (15, 100, 0),
        (16, 100, 1),
        (99, 99, 0),  # too few answers to judge a share
        (30, 200, 1),
        (0, 200, 0),
    ],
)
def test_the_lower_bound_of_the_undecided_share_stops_a_release(
    unread: int, answers: int, stops: int
) -> None:
    # tests.support puts every other question into another task: that one is all right.
    texts = [UNREAD if i < unread else RIGHT for i in range(answers) for _ in (0, 1)]
    found = gates([t if i % 2 == 0 else RIGHT for i, t in enumerate(texts)])
    assert len(found.stops) == stops
    assert bool(found.notes) == bool(unread)
    if stops:
        (stop,) = found.stops
        assert f"{unread:,} of {answers:,} answers are undecided" in stop["what"]
        for way in ("scorer", "verifier or judge", "unreadable: incorrect"):
            assert way in stop["next_step"]


def test_a_recipe_that_counts_them_as_wrong_is_not_stopped() -> None:
    found = gates([UNREAD] * 400, unreadable="incorrect")
    assert (found.stops, found.notes) == ([], [])


def test_calls_without_an_answer_are_not_undecided() -> None:
    asked = queries(["4"] * 400)
    answers = responses({"m": [None] * 300 + [RIGHT] * 100})
    labels = decide(asked, answers, file_verdicts(asked, answers))
    found = label_gates(asked, answers, file_verdicts(asked, answers), labels, Label())
    assert found.stops == []


def test_a_rule_that_contradicts_the_grades_stops_a_release_with_examples() -> None:
    # Trap: the regrade silently became the label; a model that is right 65 % of the time had 25.
    texts = [RIGHT if i % 4 == 0 else WRONG for i in range(400)]
    grades = [float(i % 100 < 65) for i in range(400)]
    found = gates(texts, grades)
    assert len(found.stops) == 2  # one per task
    what, way = found.stops[1]["what"], found.stops[1]["next_step"]
    assert "task 't1' and rule 'numeric' contradict" in what
    assert "by rule" in what
    assert what.count("as graded;") == 2  # three examples
    assert "trust: given" in way
    assert "trust: rules" in way
    assert any("agree on" in note and "κ" in note for note in found.notes)
    for trust in ("given", "rules"):
        decided = gates(texts, grades, trust=trust)
        assert decided.stops == []
        assert any("κ" in note for note in decided.notes)  # it is still said


@pytest.mark.parametrize("flips", [0, 9])
def test_small_or_uncertain_differences_are_said_and_stop_nothing(flips: int) -> None:
    texts = [RIGHT if i % 2 else WRONG for i in range(200) for _ in (0, 1)]
    grades = [float(text == RIGHT) for text in texts]
    for i in range(flips):  # 4.5 points of one task's 200 answers
        at = next(k for k in range(2 * i, 400, 2) if grades[k] == 0.0)
        grades[at] = 1.0
    found = gates(texts, grades)
    assert found.stops == []
    assert found.notes


def recorded(folder: Path, **change: Any) -> Path:
    """120 sums; the hasty model names no number one time in four."""
    folder.mkdir(parents=True, exist_ok=True)
    questions, answers = [], []
    for i in range(120):
        questions.append({"id": str(i), "question": f"What is {i} + 1?", "answer": str(i + 1)})
        answers.append({"id": str(i), "model": "careful", "output": f"Answer: {i + 1}"})
        vague = "That is hard to say."
        said = f"Answer: {i + 1}" if i % 4 else vague
        answers.append({"id": str(i), "model": "hasty", "output": said})
    for name, rows in (("questions", questions), ("answers", answers)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(RECIPE | change))
    return path


def test_a_build_stops_at_undecided_answers_and_its_way_out_is_on_the_card(tmp_path: Path) -> None:
    yard = str(tmp_path / "yard")
    with pytest.raises(GateFailed, match="30 of 120 answers are undecided") as caught:
        run_build(str(recorded(tmp_path)), yard, jobs=1)
    assert caught.value.exit_code == 3
    # The labels are there for whoever wants to look at them.
    record = json.loads((tmp_path / "yard/runs/small.json").read_text())
    assert "label" in record["stages"]
    choice = {"default": {"unreadable": "incorrect"}}
    done = run_build(str(recorded(tmp_path, label=choice)), yard, jobs=1)
    card = (Path(done["release"]["path"]) / "README.md").read_text()
    assert "30 answers could be read by no scorer; the recipe counts those as wrong" in card
    assert "with them wrong – right" not in card


def test_few_undecided_answers_leave_bounds_on_card_and_queries(tmp_path: Path) -> None:
    recipe = recorded(tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    for row in rows[2 * 12 :]:
        row["output"] = f"Answer: {int(row['id']) + 1}"  # three undecided answers remain
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    release = Path(run_build(str(recipe), str(tmp_path / "yard"), jobs=1)["release"]["path"])
    card = (release / "README.md").read_text()
    assert "| hasty | 100.0 % | 3 | 97.5 % – 100.0 % | 117 |" in card
    assert "3 of 240 answers are undecided" in card
    with duckdb.connect(str(release / "small.duckdb"), read_only=True) as connection:
        board = connection.sql(SAVED["leaderboard"].sql).fetchall()
        by_task = connection.sql(SAVED["accuracy"].sql).fetchall()
    assert [row[0] for row in board] == ["careful", "hasty"]
    assert board[1][1] == "117 of 120"
    assert board[1][5:] == (3, pytest.approx(0.975), pytest.approx(1.0))
    assert by_task[1][2:] == ("117 of 120", 117, 1.0, 3, pytest.approx(0.975), pytest.approx(1.0))


def test_grades_and_texts_of_a_recording(tmp_path: Path) -> None:
    """`collect.recorded` with a score: its grades are the labels, and a contradiction stops."""
    fields = {"query": "id", "model": "model", "text": "output", "score": "grade"}
    collect = {"provider": "recorded", "recorded": [{"path": "answers.jsonl", "fields": fields}]}
    recipe = recorded(tmp_path, collect=collect)
    path = tmp_path / "answers.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:  # a grader that read another line: the hasty model gets every other one
        row["output"] = f"Answer: {int(row['id']) + 1}"
        row["grade"] = int(row["model"] == "careful" or int(row["id"]) % 2)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    yard = tmp_path / "yard"
    with pytest.raises(GateFailed, match=r"'hasty' 50.0% are right as graded and 100.0% by the"):
        run_build(str(recipe), str(yard), jobs=1)
    accuracies = {}
    for number, trust in enumerate(("given", "rules")):
        change = {
            "collect": collect,
            "label": {"default": {"trust": trust}},
            "version": f"1.{number}.0",
        }
        recipe.write_text(yaml.safe_dump(RECIPE | change))
        release = Path(run_build(str(recipe), str(yard), jobs=1)["release"]["path"])
        assert f"`trust: {trust}`" in (release / "README.md").read_text()
        with duckdb.connect(str(release / "small.duckdb"), read_only=True) as connection:
            sql = "SELECT model_id, avg(score) FROM labels GROUP BY 1"
            accuracies[trust] = dict(connection.sql(sql).fetchall())
    assert accuracies == {
        "given": {"careful": 1, "hasty": 0.5},
        "rules": {"careful": 1, "hasty": 1},
    }


def test_gates_need_no_verdicts() -> None:
    asked, answers = queries([]), responses({})
    verdicts = file_verdicts(asked, answers)
    labels = decide(asked, answers, verdicts)
    assert label_gates(asked, answers, verdicts, labels, Label()) == LabelGates()
    assert isinstance(labels, pa.Table)
