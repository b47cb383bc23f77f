"""Forty injections at the judge, counted for the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.attacks import Row
from tests.label.test_injections import INJECTIONS, won


def test_injections(
    tmp_path: Path,
    row: Callable[[str], Row],
    full: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not full:
        pytest.skip("tests/label/test_injections.py tries them in every run")
    found = row("injections at the judge")
    moved = won(tmp_path, fence=True, monkeypatch=monkeypatch)
    found.tried += len(INJECTIONS)
    found.held += len(INJECTIONS) - moved
    found.invented += moved
    assert moved == 0
