"""The page about `verify` shows lines that the command prints of the demo, but for numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from routeyard.flows.cli import run

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "verify.md"


def words(text: str) -> list[str]:
    """Lines without their numbers."""
    return [re.sub(r"\d[\d,.]*", "#", line) for line in text.strip().splitlines()]


def test_the_page_shows_what_verify_prints(
    demo_release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", str(demo_release)]) == 0
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    printed = iter(words(capsys.readouterr().out))
    lines = [line for line in words(shown) if line != "  …"]
    assert [line for line in lines if line not in printed] == []  # `in` goes on from the last one
    assert len(lines) > 15
