"""Hard subset, baselines, headroom and predictions against plain loops."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeyard.flows.evaluation.evaluate import from_file
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.certificate import (
    agreement,
    corrected_oracle,
    crossfitted_task_oracle,
    dominated,
    resolvable_difference,
    specialist_stability,
)
from routeyard.pipelines.evaluate.experiment import Predictions, made, own, read_predictions
from routeyard.pipelines.evaluate.metrics import selection as plateau
from routeyard.pipelines.evaluate.metrics.selection import (
    best_single,
    mix_frontier,
    mix_weights,
    query_oracle,
    selection_profile,
    task_oracle,
)
from routeyard.pipelines.evaluate.results import compare, ranking
from routeyard.pipelines.evaluate.run.tables import leaderboard, profiles
from routeyard.pipelines.routers import Examples, Queries


@st.composite
def matrices(draw, missing: float = 0.2):
    n, m = draw(st.integers(1, 12)), draw(st.integers(2, 12))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    y = rng.integers(0, 2, (n, m)).astype(float)
    y[rng.random((n, m)) < missing] = np.nan
    y[np.arange(n), rng.integers(0, m, n)] = rng.integers(0, 2, n)
    return y


@given(matrices(), st.integers(0, 100))
@settings(deadline=None)
def test_oracle_takes_the_cheapest_of_the_best(y, seed) -> None:
    cost = np.random.default_rng(seed).integers(1, 4, y.shape).astype(float)
    for q, chosen in enumerate(query_oracle(y, cost)):
        known = [k for k in range(y.shape[1]) if not np.isnan(y[q, k])]
        top = max(y[q, k] for k in known)
        best = [k for k in known if y[q, k] == top]
        assert chosen == min(best, key=lambda k: (cost[q, k], k))


def test_the_oracle_takes_a_right_answer_of_unknown_price() -> None:
    assert query_oracle(np.array([[0.0, 1.0]]), np.array([[1.0, np.nan]])).tolist() == [1]


def test_task_oracle_is_the_best_single_model_of_each_task() -> None:
    y = np.array([[1, 0], [1, 0], [0, 1], [0, 1.0]])
    tasks = np.array(["a", "a", "b", "b"])
    assert task_oracle(y, tasks).tolist() == [0, 0, 1, 1]
    y[0, 0] = np.nan  # where the task's best has no label, the next best is taken
    assert task_oracle(y, tasks).tolist() == [1, 0, 1, 1]


@given(st.integers(0, 10_000), st.integers(1, 7), st.floats(0, 12))
@settings(deadline=None)
def test_no_mix_of_two_models_is_above_the_frontier(seed, m, budget) -> None:
    rng = np.random.default_rng(seed)
    cost, accuracy = rng.integers(1, 9, m).astype(float), rng.random(m)
    weights = mix_weights(cost, accuracy, budget)
    assert weights.sum() == pytest.approx(1)
    ys = mix_frontier(cost, accuracy)[1]
    assert np.all(np.diff(ys) > 0) or len(ys) == 1
    if budget >= cost.min():
        assert weights @ cost <= budget + 1e-9
        best = max(accuracy[cost <= budget])
        for a in range(m):
            for b in range(m):
                if cost[a] <= budget < cost[b]:
                    share = (budget - cost[a]) / (cost[b] - cost[a])
                    best = max(best, accuracy[a] + share * (accuracy[b] - accuracy[a]))
        assert weights @ accuracy == pytest.approx(best, abs=1e-9)


def test_ties_for_the_best_single_model_go_to_the_cheaper() -> None:
    assert best_single(np.ones((3, 2)), np.array([2.0, 1.0])) == 1
    assert best_single(np.array([[np.nan, 0.0]])) == 1


def test_entropy_is_zero_at_collapse_and_one_at_uniform() -> None:
    assert plateau.selection_entropy(np.array([1.0, 0.0])) == 0
    assert plateau.selection_entropy(np.full(7, 1 / 7)) == pytest.approx(1)
    assert plateau.selection_entropy(np.array([1.0])) == 0


@given(matrices(missing=0.0))
@settings(deadline=None)
def test_agreement_and_dominance_equal_loops(y) -> None:
    m = y.shape[1]
    for q, share in enumerate(agreement(y)):
        pairs = [(a, b) for a in range(m) for b in range(a)]
        assert share == pytest.approx(np.mean([y[q, a] == y[q, b] for a, b in pairs]))
    cost, accuracy = y.sum(axis=0), y[::-1].mean(axis=0)
    for a, off in enumerate(dominated(cost, accuracy)):
        assert off == any(
            cost[b] <= cost[a]
            and accuracy[b] >= accuracy[a]
            and (cost[b] < cost[a] or accuracy[b] > accuracy[a])
            for b in range(m)
        )


def test_the_corrected_oracle_is_unbiased_where_nothing_is_to_be_known() -> None:
    samples = (np.random.default_rng(0).random((400, 6, 8)) < 0.5).astype(float)
    assert samples.mean(axis=2).max(axis=1).mean() > 0.7
    assert corrected_oracle(samples).mean() == pytest.approx(0.5, abs=0.03)


def test_the_corrected_oracle_keeps_true_specialists() -> None:
    skill = np.where(np.arange(200)[:, None] % 4 == np.arange(4), 1.0, 0.0)
    samples = np.repeat(skill[:, :, None], 4, axis=2)
    assert corrected_oracle(samples).mean() == 1.0
    samples[0] = np.nan
    assert np.isnan(corrected_oracle(samples)[0])


def test_luck_in_small_tasks_is_taken_out_of_the_task_oracle() -> None:
    y = (np.random.default_rng(0).random((400, 10)) < 0.5).astype(float)
    tasks = np.array([f"t{i // 8}" for i in range(400)])
    naive = y[np.arange(400), task_oracle(y, tasks)].mean()
    assert naive > 0.7
    assert np.nanmean(crossfitted_task_oracle(y, tasks)) == pytest.approx(0.5, abs=0.06)


def test_stability_needs_tasks_and_tells_luck_from_skill() -> None:
    rng = np.random.default_rng(0)
    tasks = np.repeat(["a", "b", "c"], 200)
    skill = np.repeat(rng.random((3, 5)), 200, axis=0)
    real = (rng.random((600, 5)) < skill).astype(float)
    assert specialist_stability(real, tasks).mean() > 0.8
    assert specialist_stability(real, np.array(["one"] * 600)) is None


def test_resolvable_difference_shrinks_with_the_root_of_n() -> None:
    y = (np.random.default_rng(0).random((4000, 4)) < 0.6).astype(float)
    few, many = resolvable_difference(y[:1000]), resolvable_difference(y)
    assert few / many == pytest.approx(2, rel=0.1)
    assert resolvable_difference(y[:, :1]) is None


def test_only_significant_differences_fix_places() -> None:
    rng = np.random.default_rng(0)
    noise = 0.01 * rng.standard_normal((500, 3))
    entrants = {"a": (0.9, 0.9 + noise[:, 0]), "b": (0.899, 0.899 + noise[:, 1]),
                "c": (0.5, 0.5 + noise[:, 2])}  # fmt: skip
    found = compare("accuracy", "test", entrants)
    places = ranking({k: v for k, (v, _) in entrants.items()}, found, "accuracy")
    assert [(p.router, p.best_place, p.worst_place) for p in places] == [
        ("a", 1, 2),
        ("b", 1, 2),
        ("c", 3, 3),
    ]


QUERIES = Queries(("q1", "q2"), np.array(["t", "t"]))
TRAIN = Examples(QUERIES, ("a", "b"), np.ones((2, 2)))


def predicted(**columns) -> np.ndarray:
    return Predictions(pa.table(columns), "mine.csv").fit(TRAIN).scores(QUERIES)


def test_predictions_in_three_layouts() -> None:
    long = predicted(
        query_id=["q2", "q1", "q1", "q2"], model_id=["a", "a", "b", "b"], score=[3, 1, 2, 4]
    )
    assert long.tolist() == [[1, 2], [3, 4]]
    wide = predicted(query_id=["q2", "q1"], b=[4.0, 2.0], a=[3.0, 1.0])
    assert wide.tolist() == [[1, 2], [3, 4]]
    assert predicted(query_id=["q1", "q2"], model_id=["b", "a"]).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"id": ["q1"]}, "no column 'query_id'"),
        ({"query_id": ["q1"], "model_id": ["a"]}, "lacks 1 of the 2 questions, such as q2"),
        ({"query_id": ["q1", "q2"], "model_id": ["a", "gpt"]}, "not in the release: 'gpt'"),
        ({"query_id": ["q1", "q2"], "a": [1.0, 2.0]}, "no column for model 'b'"),
        ({"query_id": ["q1", "q2"], "a": [1.0, None], "b": [1.0, 1.0]}, "no score for model a"),
        ({"query_id": ["q1", "q2"], "a": ["x", "y"], "b": [1.0, 1.0]}, "no number"),
        ({"query_id": ["q1", "q2", "q1"], "model_id": ["a", "a", "b"]}, "more than one model"),
        # Scores were averaged, or the last row counted.
        (
            {
                "query_id": ["q1", "q1", "q2", "q2", "q2"],
                "model_id": ["a", "b", "a", "b", "b"],
                "score": [1.0, 1.0, 1.0, 0.0, 1.0],
            },
            "scores a model twice on a question",
        ),
        (
            {"query_id": ["q1", "q2", "q2"], "a": [1.0, 0.0, 1.0], "b": [0.5, 0.5, 0.5]},
            "holds a question twice",
        ),
    ],
)
def test_broken_predictions_are_explained(columns, says) -> None:
    # A missing prediction is never taken as score 0.
    with pytest.raises(BadInput, match=says):
        predicted(**columns)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("p.csv", "query_id,query_id,model_id\nq1,q2,a\n", "'query_id' occurs 2 times"),
        ("p.csv", "query_id,a,a,b\nq1,0,1,1\n", "'a' occurs 2 times"),
        ("p.csv", "", "no table"),
        ("p.parquet", pa.table({"query_id": ["q1"], "model_id": [["a"]]}), "'model_id' holds no"),
        ("p.parquet", pa.table({"query_id": [b"\xff"], "model_id": ["a"]}), "'query_id' holds no"),
        ("p.parquet", pa.table([["q1"], ["q2"]], ["query_id", "query_id"]), "stands 2|no table"),
    ],
)
def test_a_file_of_predictions_that_is_no_table_of_ids_is_explained(
    tmp_path, name, content, says
) -> None:
    path = tmp_path / name
    path.write_text(content) if isinstance(content, str) else pq.write_table(content, path)
    with pytest.raises(BadInput, match=says):
        read_predictions(path)
    with pytest.raises(BadInput, match=says):
        from_file(path)
    with pytest.raises(BadInput, match=says):  # as `zoo run --own` reads it: was a traceback
        made(own(str(path)))


def test_ids_of_a_csv_are_read_as_they_are_written(tmp_path) -> None:
    # As numbers, 0012 was 12, 12e4 was 120000, and the model 0613 not in the release.
    path = tmp_path / "p.csv"
    path.write_text("query_id,model_id,score\n0012,0613,0.5\n12e4,NA,1\n")
    found = read_predictions(path)
    assert found.column("query_id").to_pylist() == ["0012", "12e4"]
    assert found.column("model_id").to_pylist() == ["0613", "NA"]
    path.write_text("router,query_id,model_id\n007,1,2\n")
    assert read_predictions(path).column("router").to_pylist() == ["007"]


def test_leaderboard_puts_the_best_first_and_keeps_nulls() -> None:
    def result(name: str, accuracy: float | None) -> pa.Table:
        return pa.table(
            {
                "router": [name, name],
                "metric": ["accuracy", "qnc[usd]"],
                "split": ["test", "test"],
                "value": pa.array([accuracy, None], pa.float64()),
                "low": pa.array([0.1, None]),
                "high": pa.array([0.9, None]),
            }
        )

    board = leaderboard({"x": result("worse", 0.4), "y": result("better", 0.6)}).to_pylist()
    assert [row["router"] for row in board] == ["better", "worse"]
    assert board[0]["qnc[usd]"] is None
    assert [row["release"] for row in board] == [None, None]
    both = leaderboard({"x": result("worse", 0.4)}, releases={"x": "demo 1.0.0 (dense)"})
    assert both.column("release").to_pylist() == ["demo 1.0.0 (dense)"]
    counted = result("partly", 0.5).append_column("n", pa.array([117, 120]))
    told = leaderboard({"x": counted, "y": result("older", 0.4)}).column("questions").to_pylist()
    assert told == ["117 of 120", None]


def test_a_profile_says_where_hard_questions_go() -> None:
    # Only the second question is hard: the best model is wrong on it, others are right.
    correct = np.array([[1.0, 1, 0], [0, 1, 1], [1, 1, 0], [0, 0, 0]])
    test = SimpleNamespace(decided=correct, n_models=3, model_ids=("a", "b", "c"))
    data = SimpleNamespace(test=test, best_on_test=0, split="test")
    choice = np.array([0, 2, 1, 1])
    one = SimpleNamespace(router="r", choice=choice, profile=selection_profile(choice, 3))
    rows = profiles(data, [one]).to_pylist()  # type: ignore[arg-type,list-item]
    assert [row["share"] for row in rows] == [0.25, 0.5, 0.25]
    assert [row["hard_share"] for row in rows] == [0.0, 0.0, 1.0]
    test.decided = np.ones((4, 3))
    rows = profiles(data, [one]).to_pylist()  # type: ignore[arg-type,list-item]
    assert [row["hard_share"] for row in rows] == [None] * 3
