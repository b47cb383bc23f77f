"""`routeyard score`: one line in, one reading out; bad lines are named."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from routeyard.flows.cli import run


def _lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_scores_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "answers.jsonl"
    rows = [
        {"scorer": "numeric", "references": ["18"], "output": "So it is 18.\n#### 18"},
        {"scorer": "mcq", "choices": ["x", "y"], "references": ["B"], "output": "Answer: A"},
        {"scorer": "em", "references": "Paris", "output": "Answer: Paris"},
        {"scorer": "numeric", "references": [18], "output": "no idea"},
    ]
    file.write_text("".join(json.dumps(row) + "\n\n" for row in rows), encoding="utf-8")
    assert run(["score", str(file)]) == 0
    found = _lines(capsys.readouterr().out)
    assert [row["outcome"] for row in found] == ["correct", "incorrect", "correct", "abstain"]
    keys = ["outcome", "score", "extracted", "span", "reason"]
    assert all(list(row) == keys for row in found)
    assert [row["score"] for row in found] == [1.0, 0.0, 1.0, None]
    assert found[0]["span"] == [18, 20]  # characters of the output
    assert found[3]["span"] is None


def test_the_grade_of_a_graded_scorer_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["score", "--scorer", "f1", "--reference", "red fox", "--output", "Answer: red cat"]
    assert run(words) == 0
    (said,) = _lines(capsys.readouterr().out)
    assert run([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [said]
    assert said["score"] == 0.5


def test_reads_standard_input_and_overrides_the_scorer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = '{"scorer": "em", "references": ["18"], "output": "Answer: $18.00"}\n'
    monkeypatch.setattr("sys.stdin", io.StringIO(row * 2))
    assert run(["score", "--scorer", "numeric"]) == 0
    assert [row["outcome"] for row in _lines(capsys.readouterr().out)] == ["correct"] * 2


def test_scores_one_answer(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["score", "--scorer", "mcq", "--choice", "Rome", "--choice", "Paris"]
    assert run([*words, "--reference", "B", "--output", "It is (B)."]) == 0
    assert _lines(capsys.readouterr().out)[0]["outcome"] == "correct"
    assert run([*words, "--reference", "B", "--output", "Hard to say."]) == 0
    assert _lines(capsys.readouterr().out)[0]["outcome"] == "abstain"
    assert run([*words, "--reference", "B", "--output", "The answer is Paris."]) == 0
    assert _lines(capsys.readouterr().out)[0]["outcome"] == "correct"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "line 2 is not JSON"),
        ("[" * 100_000, "line 2 is not JSON"),  # nested deeper than the parser goes
        ("[1]", "line 2 is not a JSON object"),
        ('{"output": "x", "references": ["1"]}', "names no scorer"),
        ('{"output": "x", "references": ["1"]}', "or a field `scorer`; known: "),
        ('{"scorer": "numric", "output": "x", "references": ["1"]}', "did you mean 'numeric'?"),
        ('{"scorer": "numeric", "references": ["1"]}', "no text in `output`"),
        ('{"scorer": "numeric", "output": "1"}', "no `references`"),
        ('{"scorer": "numeric", "output": "1", "references": [null]}', "NoneType in `references`"),
        ('{"scorer": "numeric", "output": "1", "reference": ["1"]}', "did you mean 'references'?"),
    ],
)
def test_a_bad_line_is_named_and_exits_2(
    line: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "answers.jsonl"
    good = '{"scorer": "numeric", "references": ["1"], "output": "#### 1"}\n'
    file.write_text(good + line + "\n", encoding="utf-8")
    assert run(["score", str(file)]) == 2
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 1  # what came before is kept
    assert says in shown.err
    assert "line 2" in shown.err


def test_a_missing_or_binary_file_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["score", str(tmp_path / "absent.jsonl")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert run(["score", str(tmp_path / "binary")]) == 2
    assert "not UTF-8" in capsys.readouterr().err
