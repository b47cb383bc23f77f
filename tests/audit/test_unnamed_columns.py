"""Columns that no role took, and counts that do not follow texts, in strangers' files."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from routeyard.flows.audits import audit_path
from tests.conftest import Call

Row = dict[str, Any]
ARMS = {"oak-large": 0.8, "elm-mid": 0.65, "fir-mini": 0.5, "ash-nano": 0.4}
NEW = {
    "never_right", "other_arm_named", "score_contradicted", "usage_contradicted",
    "tokens_unlike_texts",
}  # fmt: skip
_WORDS = np.array(["count", "the", "stones", "that", "a", "mason", "lays", "before", "noon"])


def honest(seed: int = 5, questions: int = 150) -> list[Row]:
    """An honest matrix with columns that no role takes: some of the question, some of the arm."""
    random = np.random.default_rng(seed)
    rows = []
    for q in range(questions):
        hard, length = random.normal(0, 1.2), int(random.integers(5, 120))
        prompt = " ".join(random.choice(_WORDS, length))
        topic = str(random.choice(["walls", "roofs", "roads"]))
        for k, (arm, skill) in enumerate(ARMS.items()):
            odds = np.log(skill / (1 - skill)) - hard
            score = int(random.random() < 1 / (1 + np.exp(-odds)))
            said = " ".join(random.choice(_WORDS, int(random.integers(3, 60))))
            rows.append({
                "model": arm, "question_id": f"q{q}", "question": prompt, "response": said,
                "score": score, "prompt_tokens": 7 + k + length * 13 // 10,
                "completion_tokens": 1 + len(said.split()) * 13 // 10,
                "cost": round(1e-6 * (k + 1) * (length + 3 * len(said.split())), 9),
                "section": topic, "level": int(np.clip(np.round(hard), -1, 3)),
                "partly": min(1.0, score + 0.25 * int(random.integers(0, 3))),
                "lenient": int(score or random.random() < 0.15),
                "shard": int(random.integers(0, 3)),
                "origin": f"lab {k}", "streamed": bool(random.random() < 0.5),
            })  # fmt: skip
    return rows


def write(path: Path, rows: list[Row]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(
                stream, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ","
            )
            writer.writeheader()
            writer.writerows(rows)
    return path


def findings(path: Path, rows: list[Row]) -> dict[str, tuple[str, ...]]:
    """Kind → what each finding of it is about and says, of a file with these rows."""
    page = audit_path(write(path, rows))
    kinds: dict[str, tuple[str, ...]] = {}
    for item in page.findings:
        kinds[item.kind] = (*kinds.get(item.kind, ()), f"{item.about}: {item.says}; {item.effect}")
    return kinds


@pytest.mark.parametrize(("seed", "suffix"), [(0, ".csv"), (1, ".jsonl"), (2, ".tsv"), (3, ".csv")])
def test_honest_columns_are_no_finding(tmp_path: Path, suffix: str, seed: int) -> None:
    rows = honest(seed)
    for row in rows:
        row["outcome_word"] = "good" if row["score"] else "bad"  # repeats the score
    found = findings(tmp_path / f"honest{suffix}", rows)
    assert not NEW & found.keys(), found


#: Name of a column → what it says of an answer that was graded, and of one that was not.
FLAGS: dict[str, tuple[Any, Any]] = {
    "judge_failed": (False, True),
    "graded": (1, 0),
    "parse_error": ("", "no JSON object"),
    "judge_verdict_raw": ("A", None),
    "grader_exit_code": (0, 137),
    "http": (200, 529),
    "verdict_source": ("judge", "fallback"),
    "is_valid_json": (True, False),
    "extraction": ("ok", "failed"),
    "note du juge": ("lue", "illisible"),
    "評価": ("済", "未"),
    "evaluator_state": ("FINISHED", "KILLED"),
    "retries_left": ("3", "0"),
}


@pytest.mark.parametrize("first", range(0, len(FLAGS), 2))
def test_a_value_under_which_nothing_is_right_is_named(tmp_path: Path, first: int) -> None:
    """35 % of one arm were never graded and count as wrong; of another arm for each column."""
    random = np.random.default_rng(first)
    of_arm = dict(zip(list(FLAGS)[first : first + 2], list(ARMS)[1:], strict=False))
    rows = honest()
    for row in rows:
        for name, arm in of_arm.items():
            lost = random.random() < (0.35 if row["model"] == arm else 0.02)
            row[name] = FLAGS[name][lost]
            row["score"] = 0 if lost else row["score"]
    found = findings(tmp_path / f"flags{('.csv', '.jsonl')[first // 2 % 2]}", rows)
    for name, arm in of_arm.items():
        assert any(says.startswith(name) and arm in says for says in found["never_right"]), found
    assert not (NEW - {"never_right"}) & found.keys()


def test_a_flag_on_a_third_of_all_rows_is_a_doubt_and_the_ranking_is_told(tmp_path: Path) -> None:
    rows = honest()
    for number, row in enumerate(rows):
        row["checked"] = number % 3 != 0
        row["score"] *= row["checked"]
    (says,) = findings(tmp_path / "third.csv", rows)["never_right"]
    assert says.startswith("checked: none of the 200 answers with 'False' is right")
    assert "oak-large: accuracy" in says


@pytest.mark.parametrize("names", [("refused", "hit_max_steps"), ("abstained", "format_followed")])
def test_a_flag_of_how_the_model_itself_ended_is_noted_alone(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    """A refusal is wrong, and one model refuses more often than another."""
    random = np.random.default_rng(3)
    rows = honest()
    for row in rows:
        for name, arm in zip(names, ("elm-mid", "fir-mini"), strict=True):
            row[name] = bool(random.random() < (0.3 if row["model"] == arm else 0.02))
            row["score"] = 0 if row[name] else row["score"]
    page = audit_path(write(tmp_path / "ended.jsonl", rows))
    assert {f.severity for f in page.findings if f.kind in NEW} <= {"note"}


def test_the_line_that_a_finding_prints_leaves_its_rows_out(tmp_path: Path, call: Call) -> None:
    """A flag by itself is no status: `True` says neither that an answer is there nor that not."""
    rows = [row | {"judge_down": number % 3 == 0} for number, row in enumerate(honest())]
    for row in rows:
        row["score"] *= not row["judge_down"]
    path = tmp_path / "down.csv"
    (says,) = findings(path, rows)["never_right"]
    assert says.startswith("judge_down")
    refused = call("audit", path, "--map", "status=judge_down")
    assert refused.returncode == 2
    line = "status={{ 'ungraded' if judge_down == 'True' else 'ok' }}"
    assert f'--map "{line}"' in refused.stderr
    mended = json.loads(call("audit", path, "--json", "--map", line).stdout)
    assert "never_right" not in {item["kind"] for item in mended["findings"]}
    assert "ungraded_as_wrong" in {item["kind"] for item in mended["findings"]}


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("source_model", "{}"),  # a role: the model that served
        ("run_of", "{}"),
        ("modèle d'origine", "acme/{}-2024-08-06"),
        ("producer", "{}@20240806"),
    ],
)
def test_rows_whose_column_names_another_arm(tmp_path: Path, name: str, written: str) -> None:
    rows = honest()
    for number, row in enumerate(rows):
        foreign = row["model"] == "fir-mini" and number % 8 < 3
        row[name] = written.format("oak-large" if foreign else row["model"])
    found = findings(tmp_path / "foreign.jsonl", rows)
    (says,) = found.get("other_arm_named") or found["foreign_rows"]
    assert says.startswith("fir-mini")
    assert "oak-large" in says


@pytest.mark.parametrize(
    ("of_score", "of_usage", "measure"),
    [
        ("is_correct", "billed_dollars_x", "cost"),
        ("verdict", "n_out", "completion_tokens"),
        ("final_label", "outcome", "score"),  # on another scale
    ],
)
def test_a_column_that_equals_a_figure_but_in_some_rows(
    tmp_path: Path, of_score: str, of_usage: str, measure: str
) -> None:
    rows = honest()
    for number, row in enumerate(rows):
        odd = number % 50 == 7
        row[of_score] = 1 - row["score"] if odd else row["score"]
        row[of_usage] = row[measure] * (3 if odd else 1)
        if measure == "score":
            row[of_usage] = 100 * (row["score"] if number % 40 else 1 - row["score"])
    found = findings(tmp_path / "contradicts.csv", rows)
    of_figure = "score_contradicted" if measure == "score" else "usage_contradicted"
    assert any(repr(of_score) in says for says in found["score_contradicted"]), found
    assert any(repr(of_usage) in says for says in found[of_figure]), found


def test_two_metrics_of_an_answer_are_two_scores(tmp_path: Path) -> None:
    rows = [
        row | {"exact_match": row["score"], "f1": row["score"] if number % 40 else 1}
        for number, row in enumerate(honest())
    ]
    for row in rows:
        del row["score"]
    assert not NEW & findings(tmp_path / "metrics.csv", rows).keys()


def test_a_column_beside_those_of_models_is_asked_about(tmp_path: Path) -> None:
    severities = {"o1.preview": "doubt", "o1_preview": "doubt", "zog": "note"}
    random = np.random.default_rng(1)
    path = tmp_path / "wide.csv"
    head = ["id", "gpt-4o", "claude-3.5-sonnet", *severities]
    lines = [[f"q{q}", *map(str, random.integers(0, 2, 5))] for q in range(60)]
    path.write_text("".join(",".join(line) + "\n" for line in [head, *lines]))
    found = audit_path(path).findings
    for name, severity in severities.items():
        assert [f.severity for f in found if repr(name) in f.says] == [severity], found
    models = ",".join(head[1:])
    assert audit_path(path, {"models": models}).looked_at["arms"] == 5


#: Column → counts that nobody measured.
INVENTED: list[tuple[str, Callable[[Row, np.random.Generator], int]]] = [
    ("prompt_tokens", lambda row, random: 40),
    ("prompt_tokens", lambda row, random: 40 if random.random() < 0.8 else row["prompt_tokens"]),
    ("prompt_tokens", lambda row, random: int(random.integers(20, 160))),
    ("completion_tokens", lambda row, random: 128),
    ("completion_tokens", lambda row, random: int(random.integers(5, 80))),
    ("prompt_tokens", lambda row, random: 50 + int(row["question_id"][1:]) * 37 % 90),
]


@pytest.mark.parametrize(("column", "invent"), INVENTED)
def test_invented_counts_are_named_with_their_arm(
    tmp_path: Path, column: str, invent: Callable[[Row, np.random.Generator], int]
) -> None:
    random = np.random.default_rng(9)
    rows = honest()
    for row in rows:
        if row["model"] == "ash-nano":
            row[column] = invent(row, random)
    two = [row for row in rows if row["model"] in ("ash-nano", "oak-large")]
    for some in (rows, two):
        found = findings(tmp_path / "metering.csv", some)
        named = [says.partition(":")[0] for says in found["tokens_unlike_texts"]]
        assert named == ["ash-nano"], found
