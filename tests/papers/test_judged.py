"""Answer quality at an operating point, shares of cost bands, and battles by basis, by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from routeyard.papers.confidence_router.studies import opinions, quality_at
from routeyard.papers.cscr.studies import at_peak
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws
from routeyard.pipelines.evaluate.results import ModelPair
from routeyard.pipelines.evaluate.run.fitted import bases, first_of
from routeyard.pipelines.routers.pairs import Battles

#: Six questions: the large model repairs the first two.
SMALL = np.array([0.0, 0.0, 1.0, 1.0, 1.0, 0.0])
LARGE = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
PAIR = ModelPair(np.arange(6), SMALL, LARGE, ("s", "l"), SMALL)
IDS = tuple(f"q{i}" for i in range(6))
#: What the judge says of each: large, tie, small, tie, not judged, large.
VOTES = ("l", "tie", "s", "tie", None, "l")


def records() -> pa.Table:
    rows = []
    for i, vote in enumerate(VOTES):
        if vote is None:
            continue
        a, b = ("s", "l") if i % 2 else ("l", "s")
        rows.append(
            {
                "basis": "judge:j", "query_id": IDS[i], "model_a": a, "model_b": b,
                "winner_model_a": int(vote == a), "winner_model_b": int(vote == b),
                "winner_tie": int(vote == "tie"),
            }
        )  # fmt: skip
    rows.append({**rows[0], "basis": "correctness"})
    return pa.Table.from_pylist(rows)


def test_opinions_name_every_answer_that_nothing_beats() -> None:
    small, large = opinions(records(), "judge:j", PAIR, IDS)
    assert np.allclose(small, [0, 1, 1, 1, np.nan, 0], equal_nan=True)
    assert np.allclose(large, [1, 1, 0, 1, np.nan, 1], equal_nan=True)
    with pytest.raises(BadInput, match="on no test question"):
        opinions(records(), "judge:other", PAIR, IDS)


def test_quality_is_read_where_the_gain_is_reached() -> None:
    judged = opinions(records(), "judge:j", PAIR, IDS)
    # Questions by falling need 0, 2, 1, …: half of the gain (one repaired question of two) is
    # reached at one call in six.
    wanted = np.array([6.0, 4.0, 5.0, 3.0, 2.0, 1.0])
    row = quality_at(PAIR, judged, Draws(6, 200, 0), "test", "r", wanted, 0.5)
    assert row.metric == "answer_quality_at_cpt[50]"
    # Of five judged questions a sixth is 5/6 of the first one: from 3/5 named with none sent,
    # the first question adds 1/5.
    assert row.value == pytest.approx(3 / 5 + 5 / 6 / 5)
    assert row.low is not None
    assert row.high is not None
    assert row.low <= row.value <= row.high
    never = quality_at(
        ModelPair(PAIR.rows, LARGE, SMALL, PAIR.names, LARGE), judged, Draws(6, 100, 0), "test",
        "r", wanted, 0.5,
    )  # fmt: skip
    assert never.value is None
    assert never.reason


def test_bases_are_one_at_a_time_and_labels_stand_in_for_correctness() -> None:
    assert bases(records()) == ["correctness", "judge:j"]
    assert bases(records().slice(0, 2)) == ["judge:j", "labels"]
    assert bases(None) == ["labels"]


def test_fewer_battles_are_some_of_more() -> None:
    n = 20
    battles = Battles(
        np.arange(n, dtype=np.float32)[:, None], ("a", "b"), np.zeros(n, int), np.ones(n, int),
        np.linspace(0, 1, n),
    )  # fmt: skip
    small, large = (set(first_of(battles, k, 1).vectors[:, 0].tolist()) for k in (5, 12))
    assert len(small) == 5
    assert small < large


def test_the_cost_at_the_peak_is_that_of_the_cheapest_of_equals() -> None:
    assert at_peak(np.array([[1.0, 0.5], [2.0, 0.8], [3.0, 0.8], [4.0, 0.7]])) == 2.0
