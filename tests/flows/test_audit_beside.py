"""`audit --beside` where it cannot compare."""

from __future__ import annotations

from pathlib import Path

import pytest

from routeyard.flows.cli import run
from routeyard.flows.cli.start import digest
from routeyard.pipelines.common.errors import BadInput


def test_an_earlier_submission_needs_the_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    choices = tmp_path / "choices.csv"
    choices.write_text("query_id,model_id\nq1,a\n")
    assert run(["audit", str(choices), "--beside", str(choices)]) == 2
    said = capsys.readouterr().err
    assert "no release is named" in said
    assert "add --release" in said


def test_a_release_is_not_tried(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(BadInput, match="this is a release") as caught:
        digest(tmp_path)
    assert "routeyard evaluate" in (caught.value.next_step or "")
