"""A changed scorer of a built recipe: `relabel` reads it, `plan` says what it asks anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from routeyard.flows.cli import run
from routeyard.flows.plan import plan_build
from tests.support.small_recorded import write


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """The recipe of a build, in which another scorer is named since."""
    recipe = write(tmp_path)
    assert (
        run(["build", str(recipe), "--workspace", str(tmp_path / "yard"), "--until", "label"]) == 0
    )
    recipe.write_text(recipe.read_text().replace("scorer: numeric", "scorer: rouge_l"))
    return recipe


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
    # A recipe in another file counts as it stands there, not as the one of the last build.
    other = changed.with_name("other.yaml")
    other.write_text(changed.read_text())
    changed.write_text(changed.read_text().replace("scorer: rouge_l", "scorer: numeric"))
    assert run(["relabel", str(other), "--workspace", yard, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scorers"] == told["scorers"]


def test_relabel_of_an_unchanged_recipe_names_no_scorer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = write(tmp_path)
    yard = str(tmp_path / "yard")
    assert run(["build", str(recipe), "--workspace", yard, "--until", "label"]) == 0
    capsys.readouterr()
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
    assert "`instruction:` of the source pins" in note
    from routeyard.pipelines.scorers import SCORERS

    pinned = json.dumps(SCORERS.get("numeric").instruction)
    text = changed.read_text().replace(
        "scorer: rouge_l", f"instruction: {pinned}\n  scorer: rouge_l"
    )
    changed.write_text(text)
    notes = plan_build(changed, changed.parent / "yard")["notes"]
    assert not any("other questions" in note for note in notes)
