"""The papers' protocols: held-out groups, routers as printed, one basis, power, guessing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import Core, from_tables
from routeyard.pipelines.evaluate.certificate import (
    certify,
    crossfitted,
    difference_shown,
    fold_of,
    questions_needed,
)
from routeyard.pipelines.evaluate.held_out import held_out_groups, unseen_models
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws
from routeyard.pipelines.evaluate.metrics.selection import exchange
from routeyard.pipelines.evaluate.results import compare_published
from routeyard.pipelines.routers import PAIR_ROUTERS, ROUTERS, Examples, Queries
from routeyard.pipelines.routers.pairs import Battles, of_one_basis


def test_a_named_group_is_shown_by_category_and_the_other_way_round(core: Core) -> None:
    rows = held_out_groups(
        core, "dense", {"task-map": lambda: ROUTERS.get("task-map")()},
        groups={"stem": ["TASK-0", "task-1*"]}, resamples=200,
    )  # fmt: skip
    found = {row.group: row for row in rows}
    whole = {"stem", "stem/task-0", "stem/task-1", "not stem", "not stem/task-2", "not stem/task-3"}
    assert set(found) - whole == set()
    assert {"stem", "stem/task-0", "stem/task-1", "not stem"} <= set(found)
    assert found["stem"].n == found["stem/task-0"].n + found["stem/task-1"].n
    # Who never saw a task knows no specialist of it.
    assert found["stem"].change < 0
    assert found["not stem"].change < 0
    with pytest.raises(BadInput, match="holds no question"):
        held_out_groups(core, "dense", {}, groups={"x": ["nothing*"]})


def test_unseen_models_are_routed_among_the_unseen_or_all(core: Core) -> None:
    rows = unseen_models(
        core, "dense", ("model-0", "model-1"), {"knn": lambda: ROUTERS.get("knn")()}, resamples=100
    )
    found = {row.group: row for row in rows}
    assert set(found) == {
        "unseen models", "unseen models: among unseen", "unseen models: among all",
    }  # fmt: skip
    # Two models can be told apart from the validation questions' labels alone.
    two = core.labels[core.rows("dense", "test")][:, :2]
    among, every = (found[f"unseen models: among {name}"] for name in ("unseen", "all"))
    assert among.id_accuracy >= np.nanmean(two, axis=0).max()
    # Whoever may ask all four has more than any choice of the two could give.
    best = np.nanmean(np.nanmax(two, axis=1))
    assert max(among.id_accuracy, among.ood_accuracy) <= best < every.id_accuracy


def examples(seed: int) -> tuple[Examples, Queries]:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(30, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    y = (rng.random((30, 3)) < 0.5).astype(float)
    y[rng.random(y.shape) < 0.2] = np.nan
    asked = Queries(tuple(map(str, range(30))), np.array(["t"] * 30), vectors)
    new = rng.normal(size=(8, 4)).astype(np.float32)
    new /= np.linalg.norm(new, axis=1, keepdims=True)
    queries = Queries(tuple(map(str, range(8))), np.array(["t"] * 8), new)
    return Examples(asked, ("a", "b", "c"), y), queries


@pytest.mark.parametrize("seed", range(4))
def test_knn_as_printed_is_the_mean_of_five_neighbours(seed: int) -> None:
    train, queries = examples(seed)
    router = ROUTERS.get("knn-as-printed")()
    router.fit(train)
    for q, row in enumerate(router.scores(queries)):
        cosine = train.queries.embeddings @ queries.embeddings[q]
        # A question without any label is nobody's neighbour.
        there = [i for i in range(30) if not np.isnan(train.labels[i]).all()]
        near = sorted(there, key=lambda i: (-cosine[i], i))[:5]
        for k in range(3):
            seen = [train.labels[i, k] for i in near if not np.isnan(train.labels[i, k])]
            want = np.mean(seen) if seen else np.nanmean(train.labels[:, k])
            assert row[k] == pytest.approx(want)


def test_kmeans_as_printed_is_the_plain_mean_of_a_cluster() -> None:
    train, _ = examples(0)
    plain = ROUTERS.get("kmeans-as-printed")(choices=(1,))
    plain.fit(train)
    assert plain.scores(train.queries)[0] == pytest.approx(np.nanmean(train.labels, axis=0))


def test_the_nearest_battle_decides() -> None:
    small, large = np.zeros(3, dtype=np.int64), np.ones(3, dtype=np.int64)
    won = np.array([1.0, 0.0, 0.5])
    fought = Battles(np.eye(3, dtype=np.float32), ("s", "l"), large, small, won)
    router = PAIR_ROUTERS.get("pair-knn-as-printed")()
    router.fit(fought, "s", "l")
    near = np.array([[0.1, 0.9, 0.2], [0.9, 0.1, 0.0]], dtype=np.float32)
    asked = Queries(("x", "y"), np.array(["t", "t"]), near)
    assert router.scores(asked).tolist() == [0.0, 1.0]


def test_similarity_weights_as_printed_are_plain_cosines() -> None:
    rng = np.random.default_rng(0)
    near = rng.random((4, 3)).astype(np.float32)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    won = np.array([1.0, 0.0, 1.0, 0.0])
    # Turned away from every battle: its greatest cosine is far from 1.
    asked = near.mean(axis=0) * np.float32([1, -1, 1])
    asked /= np.linalg.norm(asked)

    class Fought:
        model_ids, vectors, outcome = ("s", "l"), near, won
        first, second = np.ones(4, dtype=np.int64), np.zeros(4, dtype=np.int64)

        def position(self, model):
            return self.model_ids.index(model)

    found = {}
    for name in ("pair-bt", "pair-bt-as-printed"):
        router = PAIR_ROUTERS.get(name)()
        router.fit(Fought(), "s", "l")
        (found[name],) = router.scores(Queries(("q",), np.array(["t"]), asked[None])).tolist()
    cosines = [float(vector @ asked) for vector in near]
    cases = (("pair-bt", max(cosines), 0.5), ("pair-bt-as-printed", 1.0, 0.0))
    for name, greatest, prior in cases:
        wins = losses = prior
        for cosine, outcome in zip(cosines, won, strict=True):
            wins += 10 ** (1 + cosine / greatest) * outcome
            losses += 10 ** (1 + cosine / greatest) * (1 - outcome)
        assert found[name] == pytest.approx(wins / (wins + losses), abs=1e-6)
    assert found["pair-bt"] != pytest.approx(found["pair-bt-as-printed"], abs=1e-3)


def test_as_printed_a_model_that_won_nothing_has_no_chance() -> None:
    vectors = np.eye(3, dtype=np.float32)
    battles = Battles(vectors, ("s", "l"), np.ones(3, np.int64), np.zeros(3, np.int64), np.ones(3))
    asked = Queries(("q",), np.array(["t"]), vectors[:1])
    for name, chance in (("pair-bt-as-printed", 1.0), ("pair-bt", 0.99)):
        (found,) = PAIR_ROUTERS.get(name)().fit(battles, "s", "l").scores(asked)
        assert found == pytest.approx(chance, abs=1e-9 if chance == 1 else 0.01)


def test_bases_of_preferences_are_not_mixed() -> None:
    table = pa.table({"basis": ["correctness", "semantic_entropy", "correctness"]})
    with pytest.raises(BadInput, match="2 bases"):
        of_one_basis(table)
    assert of_one_basis(table, "correctness").num_rows == 2
    with pytest.raises(BadInput, match="no preference record"):
        of_one_basis(table, "judge:x")


def test_mcnemar_as_published_is_one_sided_at_the_median_of_both_grids() -> None:
    y = np.array([[1, 0]] * 6 + [[0, 1]] * 1 + [[1, 1]] * 3, dtype=float)
    # Router a asks model 0 at cost 2, router b model 1 at cost 2; elsewhere both ask model 1.
    a = (np.array([1.0, 2.0, 3.0]), np.tile([1, 0, 1], (10, 1)).astype(np.int16))
    b = (np.array([1.0, 2.0, 3.0]), np.tile([1, 1, 1], (10, 1)).astype(np.int16))
    rows = {(r.first, r.second): r for r in compare_published("m", "test", {"a": a, "b": b}, y)}
    assert (rows["a", "b"].n10, rows["a", "b"].n01) == (6, 1)
    assert rows["a", "b"].p == pytest.approx((7 + 1) / 2**7)
    assert rows["b", "a"].p == pytest.approx(1 - 1 / 2**7)


def test_changes_are_conditioned_on_disagreement() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random((50, 3)) < 0.5).astype(float)
    a, b = rng.integers(0, 3, 50), rng.integers(0, 3, 50)
    apart = [q for q in range(50) if a[q] != b[q]]
    won = sum(y[q, a[q]] > y[q, b[q]] for q in apart)
    lost = sum(y[q, a[q]] < y[q, b[q]] for q in apart)
    found = exchange(y, a, b)
    assert found.given_disagreement == pytest.approx((won + lost) / len(apart))
    assert found.signed_given_disagreement == pytest.approx(abs(won - lost) / len(apart))
    assert exchange(y, a, a).given_disagreement is None


def test_power_and_its_inverse_agree() -> None:
    for points in (0.01, 0.02, 0.05):
        assert difference_shown(questions_needed(points)) == pytest.approx(points, rel=1e-3)


def test_every_question_is_routed_without_its_fold(tables) -> None:
    core = from_tables(**tables(n=120))
    core = replace(core, groups=np.arange(120) // 2)
    fold = fold_of(core, 5, 0)
    # Near-duplicates stay together, and folds are level.
    assert all(fold[2 * k] == fold[2 * k + 1] for k in range(60))
    assert np.bincount(fold).min() >= 20
    tried, _ = crossfitted(core, routers=("task-map",), folds=5, draws=Draws(120, 500, 0))
    assert tried[0].gain > 0.2


def test_what_tasks_say_is_found_on_few_test_questions(tables) -> None:
    # 40 % of 60 questions show nothing; all of them do. No embeddings are needed for it.
    parts = tables(n=60, skill=0.95, other=0.55, seed=1)
    del parts["embeddings"]
    found = certify(from_tables(**parts), resamples=500)
    assert {r.router for r in found.routers} == {"task-map"}
    assert found.routers_reason == "the questions have no embeddings"
    assert "cross-fitted in 5 folds over all 60 questions" in found.words or (
        found.verdict == "not routable"
    )


def test_guessers_leave_an_oracle_no_headroom() -> None:
    # 19 models that guess among four options: one of them is nearly always right.
    rng = np.random.default_rng(0)
    y = (rng.random((400, 19)) < 0.25).astype(float)
    n = len(y)
    core = Core(
        query_ids=tuple(f"q{i:03}" for i in range(n)),
        model_ids=tuple(f"m{k:02}" for k in range(19)),
        labels=y,
        costs={},
        tasks=np.array(["t"] * n),
        domains=np.array(["d"] * n),
        splits={"dense": np.array(["train", "test"] * (n // 2))},
        groups=np.arange(n),
        options=np.full(n, 4),
    )
    found = certify(core, resamples=300, routers=())
    assert found.figures["query_oracle"].value > 0.97
    assert found.figures["query_oracle_chance_corrected"].value < 0.45
    assert found.verdict == "not routable"
