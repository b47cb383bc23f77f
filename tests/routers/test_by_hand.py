"""Simple routers on a few questions, against values computed by hand, and their names."""

from __future__ import annotations

import numpy as np
import pytest

from routeyard.pipelines.common.errors import UnknownName
from routeyard.pipelines.routers import ROUTERS, Examples, Queries
from routeyard.pipelines.routers.base import model_means, squared_error
from routeyard.pipelines.routers.neighbours import KNN, nearest
from routeyard.pipelines.routers.references import UniformRandom, imputed_means
from tests.routers.planted import planted, with_validation

NAN = float("nan")
#: Two tasks, each a clump of its own: two directions, a little apart within.
VECTORS = np.array(
    [[1, 0.01], [1, 0.02], [1, 0.03], [0.01, 1], [0.02, 1], [0.03, 1]], dtype=np.float32
)
TASKS = np.array(["a", "a", "a", "b", "b", "b"])
LABELS = np.array([[1, 0], [1, 1], [1, NAN], [0, 1], [0, 1], [1, 1]], dtype=float)


def queries(rows: slice = slice(None)) -> Queries:
    vectors = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    ids = tuple(f"q{i}" for i in range(6)[rows])
    return Queries(ids, TASKS[rows], vectors[rows])


def scores(name: str, **settings: object) -> np.ndarray:
    """Scores of a question of each task, after a fit on all six."""
    router = ROUTERS.get(name)(**settings)
    router.fit(Examples(queries(), ("x", "y"), LABELS, {}, None, {}))
    return np.asarray(router.scores(queries()))[[0, 5]]


# Model x is right on 4 of 6, model y on 4 of the 5 that have a label.
OVERALL = np.array([4 / 6, 4 / 5])


def test_the_best_generalist_gives_every_question_the_same_means() -> None:
    # y is ahead: its missing label, where x is right, is no wrong answer, with which it would tie.
    found = scores("best-generalist")
    assert found == pytest.approx(np.array([[4 / 6, 5 / 6]] * 2))


def test_a_model_with_a_dozen_labels_is_not_the_best_generalist() -> None:
    # The third model is right on twelve easy questions, and nobody knows anything else of it.
    rng = np.random.default_rng(0)
    easy = np.arange(300) < 60
    labels = (rng.random((300, 3)) < np.where(easy[:, None], 0.95, [0.8, 0.6, 0.5])).astype(float)
    labels[:, 2] = np.nan
    labels[:12, 2] = 1.0
    found = imputed_means(labels)
    assert found[:2] == pytest.approx(labels[:, :2].mean(axis=0))
    assert np.argmax(found) == 0
    # Right where both others are wrong, it would be better than they are.
    hard = labels.copy()
    hard[:, 2] = np.where(np.arange(300) % 3 == 0, np.nan, 1.0)
    assert np.argmax(imputed_means(hard)) == 2
    order = rng.permutation(300)
    assert imputed_means(labels[order]) == pytest.approx(found, abs=1e-12)


def test_a_task_map_counts_the_overall_mean_as_one_more_question() -> None:
    # A missing label is neither wrong nor counted: y has two labels in task a.
    wanted = [
        [(3 + OVERALL[0]) / 4, (1 + OVERALL[1]) / 3],
        [(1 + OVERALL[0]) / 4, (3 + OVERALL[1]) / 4],
    ]
    assert scores("task-map", prior=1.0) == pytest.approx(np.array(wanted))


def test_avengers_pro_weighs_the_nearest_clusters() -> None:
    # With one cluster to look at: its mean, the overall mean counting as one more question.
    wanted = [
        [(3 + OVERALL[0]) / 4, (1 + OVERALL[1]) / 3],
        [(1 + OVERALL[0]) / 4, (3 + OVERALL[1]) / 4],
    ]
    assert scores("avengers-pro", clusters=2, near=1) == pytest.approx(np.array(wanted))
    # With both, softmax(−β·distance) of the two centres: the near one weighs nearly all.
    both = scores("avengers-pro", clusters=2, near=2, beta=9.0)
    weight = 1 / (1 + np.exp(-9 * (1 - 0.02)))
    assert both[0, 0] == pytest.approx(
        weight * wanted[0][0] + (1 - weight) * wanted[1][0], abs=1e-2
    )


def test_tag_router_scores_wins_against_the_most_accurate_model() -> None:
    # The reference is y. x against it: win, tie, unknown, loss, loss, tie: −1/5 overall.
    found = scores("tag-router", grains=(), prior=5.0)
    overall = -1 / 5
    of_a, of_b = (1 - 2 * overall) / (2 + 5), (-2 - 3 * overall) / (3 + 5)
    assert found[:, 0] == pytest.approx(np.array([overall + of_a, overall + of_b]))
    assert found[:, 1] == pytest.approx(0.0)  # a tie with itself


def test_a_forest_of_leaves_with_one_question_repeats_the_labels() -> None:
    # A missing label enters as the model's mean.
    found = scores("rorf", trees=200, depth=10, leaf=1, features=1.0)
    assert found[0, 0] > 0.9
    assert found[1, 1] > 0.9
    assert found[0, 1] < found[1, 1]


def test_networks_of_one_model_each_do_not_see_the_others() -> None:
    # Flipping the labels of y changes nothing for x.
    router = ROUTERS.get("mlp-as-printed")(epochs=20, seed=1)
    router.fit(Examples(queries(), ("x", "y"), LABELS, {}, None, {}))
    other = ROUTERS.get("mlp-as-printed")(epochs=20, seed=1)
    flipped = np.column_stack([LABELS[:, 0], 1 - LABELS[:, 1]])
    other.fit(Examples(queries(), ("x", "y"), flipped, {}, None, {}))
    one, two = router.scores(queries()), other.scores(queries())
    assert one[:, 0].tolist() == two[:, 0].tolist()
    assert one[:, 1].tolist() != two[:, 1].tolist()


def test_hyperparameters_are_chosen_on_validation_only() -> None:
    # Validation labels that sit between: many neighbours win, whatever train itself fits best.
    train = planted(400, 0)[0]
    middle = np.full((100, 4), 0.5)
    held = Examples(planted(100, 4)[0].queries, train.model_ids, middle)
    few, many = KNN((1, 400)), KNN((1, 400))
    few.fit(with_validation(train, train))
    many.fit(with_validation(train, held))
    assert (few.k, many.k) == (1, 400)


def test_nearest_equals_sorting_everything() -> None:
    rng = np.random.default_rng(0)
    train, test = (rng.normal(size=(n, 5)).astype(np.float32) for n in (60, 20))
    found, cosine = nearest(test, train, 7)
    similarity = test @ train.T
    want = np.argsort(-similarity, axis=1, kind="stable")[:, :7]
    assert np.array_equal(found, want)
    assert np.allclose(cosine, np.take_along_axis(similarity, want, 1))


def test_random_scores_belong_to_queries_and_models_not_positions() -> None:
    test = planted(50, 0)[0]
    forth, back = UniformRandom(), UniformRandom()
    forth.fit(test)
    back.fit(Examples(test.queries, test.model_ids[::-1], test.labels))
    scores = forth.scores(test.queries)
    assert np.array_equal(scores, back.scores(test.queries)[:, ::-1])
    turned = Queries(test.queries.query_ids[::-1], test.queries.tasks[::-1])
    assert np.array_equal(scores, forth.scores(turned)[::-1])
    assert 0.45 < scores.mean() < 0.55


def test_means_of_unlabelled_models_say_nothing() -> None:
    labels = np.array([[1.0, np.nan], [0.0, np.nan]])
    assert model_means(labels).tolist() == [0.5, 0.5]
    assert np.isnan(squared_error(labels, np.full((2, 2), np.nan)))


def test_an_unknown_router_gets_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="did you mean 'kmeans'"):
        ROUTERS.get("k-means")
