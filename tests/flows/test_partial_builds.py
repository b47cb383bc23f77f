"""A build of some stages forgets nothing of those that it did not run."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from routeyard.flows.build import status
from routeyard.flows.cli import run
from routeyard.flows.workspace import keep_review
from routeyard.schemas import VERDICTS


def test_a_build_up_to_ingest_keeps_what_was_recorded_of_later_stages(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe, yard = str(small), str(tmp_path / "yard")
    record = tmp_path / "yard" / "runs" / "small.json"
    whole = json.loads(record.read_text())
    assert {"ingest", "collect", "label", "curate", "certify"} <= set(whole["stages"])
    assert run(["build", recipe, "-w", yard, "--until", "ingest"]) == 0
    assert json.loads(record.read_text()) == whole
    for command in (
        ["relabel", "small", "-w", yard],
        ["audit", "small", "--labels", "-w", yard],
        ["review", "small", "-w", yard, "--csv", str(tmp_path / "queue.csv")],
    ):
        assert run(command) == 0, (command, capsys.readouterr().err)
    # Other questions: what was made of the former ones is not theirs.
    lines = (tmp_path / "questions.jsonl").read_text().splitlines()
    (tmp_path / "questions.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    assert run(["build", recipe, "-w", yard, "--until", "ingest"]) == 0
    assert set(json.loads(record.read_text())["stages"]) == {"ingest", "pool"}
    # They were reached before, and it is the questions that make them stale.
    rows = {row["stage"]: row for row in status(recipe, yard)}
    assert rows["collect"]["state"] == "stale"
    assert "input 'queries' changed" in rows["collect"]["why"]
    # A damaged record is written anew.
    record.write_text("{")
    assert run(["build", recipe, "-w", yard, "--until", "ingest"]) == 0
    assert set(json.loads(record.read_text())["stages"]) == {"ingest", "pool"}


def test_a_review_makes_the_labels_stale(small: Path, tmp_path: Path) -> None:
    # `status` called every stage fresh, and the release waiting.
    recipe, yard = str(small), tmp_path / "yard"
    rows = {row["stage"]: row["state"] for row in status(recipe, str(yard))}
    assert set(rows.values()) == {"fresh"}
    (verdicts,) = yard.glob("stages/label/*/verdicts.parquet")
    one = pq.read_table(verdicts).slice(0, 1)
    at = one.schema.get_field_index("scorer")
    decided = one.set_column(at, "scorer", pa.array(["human:ada"]))
    keep_review(yard, "small", VERDICTS.conform(decided), at="2026-11-01T00:00:00Z")
    states = {row["stage"]: row["state"] for row in status(recipe, str(yard))}
    waiting = dict.fromkeys(
        ("hidden_states", "embed", "curate", "audit", "certify", "release"), "waiting"
    )
    assert states == {**rows, "label": "stale", **waiting}
