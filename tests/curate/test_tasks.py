from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import LabelMatrix, label_matrix
from routeyard.pipelines.curate.task_analysis import (
    average_ranks,
    difficulty,
    model_costs,
    overall_accuracy,
    specialist_scores,
    task_similarity,
)


def matrix(rows: dict[str, str], tasks: str) -> LabelMatrix:
    """One string of 1, 0 and . (missing) per model; one letter per query's task."""
    names = sorted(set(tasks))
    cells = np.array([list(rows[m]) for m in sorted(rows)])
    return LabelMatrix(
        sorted(rows),
        [str(i) for i in range(len(tasks))],
        np.array([names.index(t) for t in tasks]),
        names,
        cells == "1",
        cells != ".",
    )


# generalist: 5/6; specialist: all of b, none of a; cheap: little of both.
POOL = matrix({"cheap": "100100", "general": "111110", "special": "000111"}, "aaabbb")


def test_specialist_score_by_hand() -> None:
    result = specialist_scores(POOL, {"cheap": 1.0, "general": 2.0, "special": 3.0})
    # Budget 1 has one model: skipped. Budget 2: general against cheap: -2/3, -1/3.
    # Budget 3: general against the best of cheap and special: -2/3, +1/3.
    assert result.budgets == [2.0, 3.0]
    assert result.skipped_budgets == 1
    assert result.generalists == ["general", "general"]
    assert result.score.tolist() == pytest.approx([-2 / 3, 0.0])


def test_without_any_cost_one_unlimited_budget_is_used_and_named() -> None:
    result = specialist_scores(POOL, {})
    assert result.unlimited
    assert result.budgets == [float("inf")]
    assert result.score.tolist() == pytest.approx([-2 / 3, 1 / 3])


def test_models_without_a_cost_are_left_out_and_counted() -> None:
    result = specialist_scores(POOL, {"cheap": 1.0, "general": 2.0})
    assert result.without_cost == ["special"]
    assert result.score.tolist() == pytest.approx([-2 / 3, -1 / 3])


def test_ties_go_to_the_lower_cost_then_the_id() -> None:
    pool = matrix({"x": "10", "y": "01", "z": "11"}, "ab")
    assert specialist_scores(pool, {"x": 1.0, "y": 1.0}).generalists == ["x"]
    same = matrix({"x": "10", "y": "10"}, "ab")
    assert specialist_scores(same, {"x": 2.0, "y": 1.0}).generalists == ["y"]


def test_missing_labels_do_not_count_as_wrong() -> None:
    pool = matrix({"x": "1.", "y": "10"}, "ab")
    result = specialist_scores(pool, {})
    # x has the better accuracy over its labels and none in b: b has no score.
    assert result.generalists == ["x"]
    assert np.isnan(result.score[1])
    assert result.score[0] == 0.0


def test_macro_weighting() -> None:
    pool = matrix({"x": "1110", "y": "0001"}, "aaab")
    right, count = pool.by_task()
    assert overall_accuracy(right, count, "query").tolist() == [0.75, 0.25]
    assert overall_accuracy(right, count, "task").tolist() == [0.5, 0.5]


def test_difficulty_ranks_and_similarity() -> None:
    by_task, by_query = difficulty(matrix({"x": "1.0", "y": "0.0"}, "aab"))
    assert by_query[0] == 0.5
    assert np.isnan(by_query[1])
    assert by_task.tolist() == [0.5, 1.0]
    ranks, won = average_ranks(POOL)
    assert ranks.tolist() == [2.5, 1.5, 2.0]
    assert won.tolist() == [0, 1, 1]
    vectors = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    assert task_similarity(vectors, np.array([0, 1, 2]), 3).tolist() == [
        [1, 1, 0], [1, 1, 0], [0, 0, 1],
    ]  # fmt: skip


def test_cost_is_metered_or_listed_never_mixed(make_models: Any) -> None:
    models = make_models(["a", "b"], price_in=[1.0, None], price_out=[2.0, 1.0])
    assert model_costs({"models": models}) == {"a": 3.0, "b": None}


def test_stray_labels_are_named(make_queries: Any, make_models: Any, make_labels: Any) -> None:
    tables = {
        "queries": make_queries([{"name": "a"}]),
        "models": make_models(["m"]),
        "labels": make_labels([("q" + "0" * 20, "m", True)]),
    }
    with pytest.raises(BadInput, match="belong to no query"):
        label_matrix(tables, where="test")
