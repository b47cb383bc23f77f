"""What a plan or build cannot know, leaves out or does not look for is said in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from routeyard.flows.cli import run
from routeyard.flows.deploy import check_cron, deploy
from routeyard.flows.plan import _few, plan_build
from routeyard.pipelines.common.errors import BadInput
from tests.support.small_recorded import RECIPE, write

Capture = pytest.CaptureFixture[str]


def asked(folder: Path, model: dict[str, Any], collect: dict[str, Any]) -> str:
    """A recipe whose model would be asked; nothing listens, and planning asks nobody."""
    provider = {"name": "p", "base_url": "http://127.0.0.1:9/v1"}
    pool = {"models": [{"model_id": "m", **model}], "providers": [provider]}
    return str(write(folder, pool=pool, collect=collect))


PRICES = {"price_in": 1.0, "price_out": 2.0, "price_date": "2026-01-01"}


@pytest.mark.parametrize(
    ("model", "collect", "unknown"),
    [
        (PRICES, {"max_tokens": 50}, []),
        (PRICES, {}, ["'collect.max_tokens'"]),
        ({**PRICES, "price_out": None}, {"max_tokens": 50}, ["the model's 'price_out'"]),
        (
            {},
            {},
            ["the model's 'price_in'", "the model's 'price_out'", "'collect.max_tokens'"],
        ),
    ],
)
def test_a_plan_names_what_the_cost_is_not_known_for(
    tmp_path: Path, capsys: Capture, model: dict[str, Any], collect: dict[str, Any], unknown: list
) -> None:
    recipe = asked(tmp_path, model, collect)
    (row,) = plan_build(recipe, tmp_path / "yard")["models"]
    assert row["unknown"] == unknown
    assert run(["plan", recipe, "-w", str(tmp_path / "yard")]) == 0
    shown = capsys.readouterr().out
    assert all(f"is not known without {what} (m)" in shown for what in unknown)
    assert ("is not known without" in shown) == bool(unknown)


def test_a_plan_says_that_the_version_is_released(small: Path, tmp_path: Path) -> None:
    recipe, yard = small, tmp_path / "yard"
    assert not any("released already" in note for note in plan_build(recipe, "none")["notes"])
    (note,) = (n for n in plan_build(recipe, yard)["notes"] if "released already" in n)
    assert "nothing it is made of has changed" in note
    lines = (tmp_path / "answers.jsonl").read_text().splitlines()
    (tmp_path / "answers.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    (note,) = (n for n in plan_build(recipe, yard)["notes"] if "released already" in n)
    assert "collect: " in note
    assert "set a new 'version'" in note


def test_a_build_ends_with_its_losses(small: Path, tmp_path: Path, capsys: Capture) -> None:
    recipe, yard = small, tmp_path / "yard"
    assert run(["build", str(recipe), "-w", str(yard)]) == 0
    shown = " ".join("".join(capsys.readouterr()).split())
    assert "1 pairs without a label: no recorded answer" in shown
    assert "1 questions x 1 models" in shown
    assert "near-duplicates were not looked for (rule dedup)" in shown
    release = yard / "releases" / "small" / "1.0.0"
    card = " ".join((release / "README.md").read_text().split())
    assert "not looked for" in card
    assert "no recorded answer" in card
    assert run(["health", str(release), "--out", str(tmp_path / "health")]) == 0
    (page,) = (tmp_path / "health").glob("*.md")
    assert "not looked for" in page.read_text()
    assert "near-duplicates will not be looked for" in " ".join(plan_build(recipe, yard)["notes"])


def test_a_scorer_that_fails_on_a_whole_task_is_said(tmp_path: Path, capsys: Capture) -> None:
    fields = {**RECIPE["sources"][0]["fields"], "task": "task"}
    # Embeddings that are asked for are made, although no rule needs them.
    release = {**RECIPE["release"], "include_embeddings": True}
    sources = [{**RECIPE["sources"][0], "fields": fields}]
    recipe = write(tmp_path, sources=sources, release=release)
    rows = [json.loads(line) for line in (tmp_path / "questions.jsonl").read_text().splitlines()]
    for i, row in enumerate(rows):
        row |= {"task": "words", "answer": "no number"} if i < 4 else {"task": "sums"}
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "questions.jsonl").write_text(text)
    assert run(["build", str(recipe), "-w", str(tmp_path / "yard")]) == 0
    shown = " ".join("".join(capsys.readouterr()).split())
    assert "8 pairs without a label: scorer error of 'numeric'" in shown
    assert "4 questions x 2 models" in shown
    assert "mend the references or choose another scorer" in shown
    data = tmp_path / "yard" / "releases" / "small" / "1.0.0" / "data"
    assert pq.read_table(data / "embeddings.parquet").num_rows == 12


def test_a_scorer_that_fails_on_every_question_ends_the_build_by_its_name(
    tmp_path: Path, capsys: Capture
) -> None:
    recipe = write(tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "questions.jsonl").read_text().splitlines()]
    text = "".join(json.dumps({**row, "answer": "no number"}) + "\n" for row in rows)
    (tmp_path / "questions.jsonl").write_text(text)
    assert run(["build", str(recipe), "-w", str(tmp_path / "yard")]) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "no answer has a label: scorer 'numeric' (23 errors) failed on every question" in shown
    assert "'no number'" in shown
    assert "mend fields.references" in shown


def test_a_deployment_that_cannot_run_is_refused_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadInput, match="is no cron schedule") as refused:
        check_cron("every monday")
    assert len(str(refused.value).splitlines()) <= 3
    check_cron("0 6 * * 1")
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setattr("routeyard.flows.deploy.api_configured", lambda: False)
    with pytest.raises(BadInput, match="nothing will run"):
        deploy(str(write(tmp_path)), tmp_path / "yard")


def test_many_reasons_are_the_first_and_how_many_more() -> None:
    assert _few("a changed; b changed; c changed") == "a changed; b changed; c changed"
    assert _few("; ".join("abcde")) == "a; b; c and 2 more"
