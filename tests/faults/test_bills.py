"""Servers that bill for their work and report less: how far a budget is passed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.calls.lying import CONCURRENCY, LIES, LIMIT, spend, worst_call
from tests.faults.attacks import Row

pytestmark = pytest.mark.skipif(
    not os.environ.get("ROUTEYARD_FAULTS"), reason="in the full suite: tests/calls has them alone"
)


@pytest.mark.parametrize("name", LIES)
def test_a_bill(name: str, tmp_path: Path, row: Callable[[str], Row]) -> None:
    found = row("lying bills")
    bill, _ = spend(LIES[name], tmp_path)
    found.tried += 1
    assert bill.usd <= LIMIT * bill.ratio + CONCURRENCY * worst_call()
    assert bill.usd - bill.unseen <= LIMIT + CONCURRENCY * worst_call()
    found.held += 1
