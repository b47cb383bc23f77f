"""Columns that no role took, and counts that do not follow texts, in strangers' files."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
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


def findings(path: Path, rows: Iterable[Row]) -> dict[str, tuple[str, ...]]:
    """Kind → what each finding of it is about and says, of a file with these rows."""
    rows = list(rows)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(
                stream, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ","
            )
            writer.writeheader()
            writer.writerows(rows)
    page = audit_path(path)
    kinds: dict[str, tuple[str, ...]] = {}
    for item in page.findings:
        kinds[item.kind] = (*kinds.get(item.kind, ()), f"{item.about}: {item.says}; {item.effect}")
    return kinds


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".tsv"])
@pytest.mark.parametrize("seed", range(4))
def test_honest_columns_are_no_finding(tmp_path: Path, suffix: str, seed: int) -> None:
    found = findings(tmp_path / f"honest{suffix}", honest(seed))
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


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@pytest.mark.parametrize("name", FLAGS)
def test_a_value_under_which_nothing_is_right_is_named(
    tmp_path: Path, name: str, suffix: str
) -> None:
    """35 % of one arm were never graded and count as wrong."""
    random = np.random.default_rng(len(name))
    graded, not_graded = FLAGS[name]
    rows = honest()
    for row in rows:
        lost = random.random() < (0.35 if row["model"] == "elm-mid" else 0.02)
        row[name] = not_graded if lost else graded
        row["score"] = 0 if lost else row["score"]
    found = findings(tmp_path / f"flags{suffix}", rows)
    assert any(says.startswith(name) and "elm-mid" in says for says in found["never_right"]), found
    assert not (NEW - {"never_right"}) & found.keys()


def test_a_flag_on_a_third_of_all_rows_is_a_doubt_and_the_ranking_is_told(tmp_path: Path) -> None:
    rows = honest()
    for number, row in enumerate(rows):
        row["checked"] = number % 3 != 0
        row["score"] *= row["checked"]
    (says,) = findings(tmp_path / "third.csv", rows)["never_right"]
    assert says.startswith("checked: none of the 200 answers with 'False' is right")
    assert "oak-large: accuracy" in says


@pytest.mark.parametrize("name", ["refused", "abstained", "hit_max_steps", "format_followed"])
def test_a_flag_of_how_the_model_itself_ended_is_noted_alone(tmp_path: Path, name: str) -> None:
    """A refusal is wrong, and one model refuses more often than another."""
    random = np.random.default_rng(3)
    rows = honest()
    for row in rows:
        row[name] = bool(random.random() < (0.3 if row["model"] == "elm-mid" else 0.02))
        row["score"] = 0 if row[name] else row["score"]
    path = tmp_path / "ended.jsonl"
    findings(path, rows)
    severities = {f.severity for f in audit_path(path).findings if f.kind in NEW}
    assert severities <= {"note"}


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


def test_a_column_that_repeats_the_score_is_none(tmp_path: Path) -> None:
    rows = [row | {"outcome_word": "good" if row["score"] else "bad"} for row in honest()]
    assert not NEW & findings(tmp_path / "repeats.csv", rows).keys()


@pytest.mark.parametrize("name", ["source_model", "run_of", "modèle d'origine", "producer"])
def test_rows_whose_column_names_another_arm(tmp_path: Path, name: str) -> None:
    rows = honest()
    for number, row in enumerate(rows):
        foreign = row["model"] == "fir-mini" and number % 8 < 3
        row[name] = "oak-large" if foreign else row["model"]
    found = findings(tmp_path / "foreign.jsonl", rows)
    (says,) = found.get("other_arm_named") or found["foreign_rows"]
    assert says.startswith("fir-mini")
    assert "oak-large" in says


@pytest.mark.parametrize(
    ("kind", "name", "measure"),
    [
        ("score_contradicted", "is_correct", "score"),
        ("score_contradicted", "verdict", "score"),
        ("score_contradicted", "final_label", "score"),
        ("usage_contradicted", "billed_dollars_x", "cost"),
        ("usage_contradicted", "n_out", "completion_tokens"),
    ],
)
def test_a_column_that_equals_a_figure_but_in_some_rows(
    tmp_path: Path, kind: str, name: str, measure: str
) -> None:
    rows = honest()
    for number, row in enumerate(rows):
        odd = number % 50 == 7
        row[name] = (
            row[measure]
            if not odd
            else (1 - row["score"] if measure == "score" else 3 * row[measure])
        )
    found = findings(tmp_path / "contradicts.csv", rows)
    assert kind in found, found
    assert repr(name) in found[kind][0]


def test_a_verdict_on_another_scale_that_differs_in_some_rows(tmp_path: Path) -> None:
    rows = [
        row | {"outcome": 100 * (row["score"] if number % 40 else 1 - row["score"])}
        for number, row in enumerate(honest())
    ]
    found = findings(tmp_path / "hundred.csv", rows)
    assert "'outcome'" in found["score_contradicted"][0], found


def test_two_metrics_of_an_answer_are_two_scores(tmp_path: Path) -> None:
    rows = [
        row | {"exact_match": row["score"], "f1": row["score"] if number % 40 else 1}
        for number, row in enumerate(honest())
    ]
    for row in rows:
        del row["score"]
    assert not NEW & findings(tmp_path / "metrics.csv", rows).keys()


@pytest.mark.parametrize("name", ["acme/{}-2024-08-06", "{}@20240806", "{}"])
def test_another_arm_is_known_by_its_providers_spelling(tmp_path: Path, name: str) -> None:
    rows = honest()
    for number, row in enumerate(rows):
        foreign = row["model"] == "fir-mini" and number % 8 < 3
        row["made_by"] = name.format("oak-large" if foreign else row["model"])
    (says,) = findings(tmp_path / "spelled.jsonl", rows)["other_arm_named"]
    assert "oak-large" in says


@pytest.mark.parametrize(
    ("name", "severity"), [("o1.preview", "doubt"), ("o1_preview", "doubt"), ("zog", "note")]
)
def test_a_column_beside_those_of_models_is_asked_about(
    tmp_path: Path, name: str, severity: str
) -> None:
    random = np.random.default_rng(1)
    path = tmp_path / "wide.csv"
    head = ["id", "gpt-4o", "claude-3.5-sonnet", name]
    lines = [[f"q{q}", *map(str, random.integers(0, 2, 3))] for q in range(60)]
    path.write_text("".join(",".join(line) + "\n" for line in [head, *lines]))
    asked = [f for f in audit_path(path).findings if repr(name) in f.says]
    assert [f.severity for f in asked] == [severity]
    models = "gpt-4o,claude-3.5-sonnet," + name
    assert audit_path(path, {"models": models}).looked_at["arms"] == 3


def _constant(row: Row, random: np.random.Generator) -> None:
    row["prompt_tokens"] = 40


def _mostly(row: Row, random: np.random.Generator) -> None:
    row["prompt_tokens"] = 40 if random.random() < 0.8 else row["prompt_tokens"]


def _drawn(row: Row, random: np.random.Generator) -> None:
    row["prompt_tokens"] = int(random.integers(20, 160))


def _answers(row: Row, random: np.random.Generator) -> None:
    row["completion_tokens"] = 128


def _drawn_answers(row: Row, random: np.random.Generator) -> None:
    row["completion_tokens"] = int(random.integers(5, 80))


def _of_the_id(row: Row, random: np.random.Generator) -> None:
    row["prompt_tokens"] = 50 + int(row["question_id"][1:]) * 37 % 90


@pytest.mark.parametrize(
    "invent", [_constant, _mostly, _drawn, _answers, _drawn_answers, _of_the_id]
)
def test_invented_counts_are_named_with_their_arm(
    tmp_path: Path, invent: Callable[[Row, np.random.Generator], None]
) -> None:
    random = np.random.default_rng(9)
    rows = honest()
    for row in rows:
        if row["model"] == "ash-nano":
            invent(row, random)
    found = findings(tmp_path / "metering.csv", rows)
    assert [says.partition(":")[0] for says in found["tokens_unlike_texts"]] == ["ash-nano"], found
    two = [row for row in rows if row["model"] in ("ash-nano", "oak-large")]
    found = findings(tmp_path / "two.csv", two)
    assert [says.partition(":")[0] for says in found["tokens_unlike_texts"]] == ["ash-nano"], found
