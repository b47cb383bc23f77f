"""`benchmarks weak`: counts, the file to read by hand, and a reading that no mark supports."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.answers.weak import Answer, measure, weak_model
from routeyard.pipelines.label.scorers import numeric
from routeyard.pipelines.label.scorers.scorer import ScoreResult, ScoringInput


def _answers() -> list[Answer]:
    texts = ["The answer is 5.", "The answer is 6.", "Now 2 + 3 = 5", "Answer: 5\n\nThis is the"]
    return [Answer("w", "How many?", "5", "m", text, n > 1, None) for n, text in enumerate(texts)]


def test_what_is_labelled_correct_is_counted_and_shown() -> None:
    figures, rows = measure(_answers(), numeric.read)
    assert figures["w"]["answers"] == 4
    assert figures["w"]["labelled_correct"] == len(rows) == 2
    assert figures["w"]["doubtful"] == 0
    assert rows[0]["reason"] == "stated: 5"
    assert "The answer is 5." in rows[0]["read"]


def test_a_truncated_answer_read_without_a_mark_is_doubtful() -> None:
    def careless(asked: ScoringInput, output: str) -> ScoreResult:
        return ScoreResult("correct", 1.0, "5", (0, 1), "concluding sentence: 5")

    assert measure(_answers(), careless)[0]["w"]["doubtful"] == 2


def test_a_weak_models_file_is_joined_with_the_questions(tmp_path: Path) -> None:
    (tmp_path / "test.jsonl").write_text(
        json.dumps({"question": "2 + 3?", "answer": "It is\n#### 5"}) + "\n"
    )
    said = tmp_path / "tiny.jsonl"
    said.write_text(json.dumps({"row": 0, "text": "#### 5", "truncated": False}) + "\n")
    one = next(weak_model(tmp_path, said))
    assert (one.question, one.reference, one.model) == ("2 + 3?", "5", "tiny")
