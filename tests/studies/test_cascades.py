"""The table of cascades: every answer is paid, and a perfect check reaches the oracle."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from routeyard.pipelines.evaluate.studies import STUDIES
from routeyard.pipelines.evaluate.studies.study import StudyContext
from routeyard.schemas import SIGNALS
from tests.evaluate.conftest import planted_tables


def context(*, signals: bool) -> StudyContext:
    tables = planted_tables(n=500, m=4)
    if signals:
        rng = np.random.default_rng(0)
        right = tables["labels"].column("correct").to_numpy(zero_copy_only=False)
        shown = 0.5 * right + 0.5 * rng.random(len(right))
        rows = [
            {
                "query_id": q, "model_id": m, "sample": 0, "n_tokens": 5, "entropy": None,
                "margin": float(s), "max_logit": None, "perplexity": None,
                "unreturned_mass": None, "self_assessment": None,
            }
            for q, m, s in zip(
                tables["labels"].column("query_id").to_pylist(),
                tables["labels"].column("model_id").to_pylist(),
                shown,
                strict=True,
            )
        ]  # fmt: skip
        tables["signals"] = SIGNALS.from_rows(rows)
    return StudyContext("made", tables, lambda name: pytest.fail(name), resamples=200)


@pytest.mark.parametrize("signals", [False, True])
def test_every_answer_is_paid(signals: bool) -> None:
    found = {
        (one.row, one.column): one
        for one in STUDIES.get("cascades").cells(context(signals=signals))
    }
    oracle = found["oracle, asked at once", "accuracy"].value
    assert found["verified, 4 cheapest", "accuracy"].value == pytest.approx(oracle)
    single = found["best single model", "mean cost"]
    assert found["best single model", "models asked"].value == 1
    for stages in (2, 3, 4):
        asked = found[f"verified, {stages} cheapest", "models asked"]
        assert 1 < asked.value < stages
        assert asked.low <= asked.value <= asked.high
    # The oracle pays the one answer that it takes; who looks first pays those before it as well.
    paid = found["verified, 4 cheapest", "mean cost"].value
    assert paid > found["oracle, asked at once", "mean cost"].value
    named = {row for row, _ in found if row.startswith("margin")}
    assert bool(named) is signals
    if signals:
        dear = found["margin, 2 × best single", "accuracy"].value
        assert dear > found["best single model", "accuracy"].value
        assert found["margin, 0.5 × best single", "mean cost"].value < 0.75 * single.value
        assert " → " in found["margin, 2 × best single", "list"].text


def test_questions_that_a_model_was_not_asked_are_left_out() -> None:
    one = context(signals=False)
    labels = one.tables["labels"]
    holes = pa.array(np.arange(labels.num_rows) % 8 != 0)
    one.tables["labels"] = labels.filter(holes)  # type: ignore[index]
    cells = {(c.row, c.column): c for c in STUDIES.get("cascades").cells(one)}
    assert 0 < cells["best single model", "accuracy"].value < 1
