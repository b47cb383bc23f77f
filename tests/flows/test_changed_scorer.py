"""A changed scorer of a built recipe: `relabel` reads it, `plan` says what it asks anew."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from routeyard.flows.cli import run
from routeyard.flows.plan import plan_build


@pytest.fixture
def changed(small: Path) -> Path:
    """The recipe of a build, in which another scorer is named since."""
    small.write_text(small.read_text().replace("scorer: numeric", "scorer: rouge_l"))
    return small


def test_relabel_reads_the_recipe_as_it_is_now(
    changed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    yard = str(changed.parent / "yard")
    assert run(["relabel", "small", "--workspace", yard, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["scorers"] == [
        {"source": "sums", "before": "numeric", "after": "rouge_l", "questions": 12}
    ]
    assert told["labels"] > 0
    assert run(["relabel", "small", "--workspace", yard]) == 0
    printed = capsys.readouterr().out
    assert "12 questions are read by 'rouge_l', and were by 'numeric'" in printed
    # Only labels with another score are listed; the others are a number.
    listed = re.findall(r"^  \S+ \S+: (\S+) by numeric → (\S+) by rouge_l", printed, re.MULTILINE)
    assert all(before != after for before, after in listed)
    (same,) = re.findall(r"([\d,]+) labels keep their score", printed)
    assert len(listed) + int(same) == told["labels"]
    # A recipe in another file counts as it stands there, not as the one of the last build.
    other = changed.with_name("other.yaml")
    other.write_text(changed.read_text())
    changed.write_text(changed.read_text().replace("scorer: rouge_l", "scorer: numeric"))
    assert run(["relabel", str(other), "--workspace", yard, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scorers"] == told["scorers"]


def test_relabel_of_an_unchanged_recipe_names_no_scorer(
    small_built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    yard = str(small_built / "yard")
    assert run(["relabel", "small", "--workspace", yard, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["scorers"], told["labels"]) == ([], 0)


def test_plan_says_which_questions_change_and_how_to_pin_them(changed: Path) -> None:
    (note,) = [
        note
        for note in plan_build(changed, changed.parent / "yard")["notes"]
        if "other questions" in note
    ]
    assert "12 questions" in note
    assert "from 'numeric' to 'rouge_l'" in note
    # The line that the note gives is all that has to be written.
    (pinned,) = re.findall(r"`(instruction: .*)` of the source keeps", note)
    changed.write_text(
        changed.read_text().replace("scorer: rouge_l", f"{pinned}\n  scorer: rouge_l")
    )
    notes = plan_build(changed, changed.parent / "yard")["notes"]
    assert not any("other questions" in note for note in notes)
