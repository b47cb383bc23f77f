"""The replay of informative rounds: every budget has its row, and its figures hold together."""

from __future__ import annotations

import numpy as np
import pytest

from routeyard.pipelines.evaluate.studies import items as collection
from routeyard.pipelines.evaluate.studies.study import StudyContext
from tests.studies.test_studies import reference, tables


def test_rounds_and_uniform_coverage_are_compared_at_each_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collection, "_SEEDS", 3)
    monkeypatch.setattr(collection, "COLLECTION_BUDGETS", (0.2, 0.5))
    random = np.random.default_rng(0)
    ease = random.normal(0, 0.3, 240)
    right = {
        f"m{k}": (random.random(240) < np.clip(0.2 + 0.12 * k + ease, 0, 1)).astype(float).tolist()
        for k in range(6)
    }
    given = StudyContext("mine", tables(right, ["a"] * 120 + ["b"] * 120), reference, resamples=50)
    cells = {(cell.row, cell.column): cell for cell in collection.collection_cells(given)}
    assert len(cells) == 2 * 5
    for row in ("20 % of all calls", "50 % of all calls"):
        saved = cells[row, "calls of uniform coverage over ours"]
        assert saved.low <= saved.value <= saved.high
        assert 0.2 < saved.value < 5
        assert cells[row, "true differences inside"].value > 0.8
        # Questions that models share tell a pair apart better than questions of their own.
        assert cells[row, "were all ease known"].value > 1
    wide, narrow = (
        cells[row, "rank interval, rounds"].value for row in sorted({row for row, _ in cells})
    )
    assert narrow < wide


def test_everything_asked_leaves_no_pair_open() -> None:
    random = np.random.default_rng(1)
    scores = (random.random((90, 4)) < [0.3, 0.5, 0.52, 0.9]).astype(float)
    shares, widths = collection.uniform_widths(scores, np.arange(90) % 3, seed=0)
    assert shares[-1] == 1
    assert widths[-1] == 0
    assert (np.diff(widths) <= 0).all()
