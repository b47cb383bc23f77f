"""Figures of `docs/defects.md` are those that its commands give today."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from routeyard.flows.cli import run

PAGE = (Path(__file__).parents[2] / "docs" / "defects.md").read_text(encoding="utf-8")


def audited(name: str, yard: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run(["build", name, "--workspace", str(yard), "--until", "label"]) == 0
    capsys.readouterr()
    assert run(["audit", name, "--labels", "--workspace", str(yard), "--json"]) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return said


def about(said: dict[str, Any], kind: str) -> dict[str, str]:
    return {one["about"]: one["says"] for one in said["findings"] if one["kind"] == kind}


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.timeout(900)
def test_mmlu_pro(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = audited("mmlu_pro", tmp_path, capsys)
    shares = sorted(words.partition("%")[0] for words in about(said, "conflicting_run").values())
    medians = {words.partition("median model ")[2].partition("%")[0]
               for words in about(said, "conflicting_run").values()}  # fmt: skip
    assert len(shares) == 2
    assert f"({shares[1]} % and {shares[0]} % of their answers" in PAGE
    assert f"the median model does in {min(medians)} %)" in PAGE
    assert f"under {len(about(said, 'suspect_gold')):,} of 12,032 questions" in PAGE
    missing = sum(row["pairs"] for row in said["not_labelled"])
    assert f"{missing:,} of {29 * 12_032:,} pairs have no answer" in PAGE


@pytest.mark.slow
@pytest.mark.data
def test_gsm8k(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    doubted = about(audited("zeroeval_gsm", tmp_path, capsys), "suspect_gold")
    assert f"under {len(doubted)} of 1,319 questions" in PAGE
