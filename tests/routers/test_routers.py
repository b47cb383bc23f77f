"""Reference routers on planted structure, and the door for others."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from routeyard.pipelines.common.errors import BadInput, UnknownName
from routeyard.pipelines.common.matrix import Arms
from routeyard.pipelines.routers import ROUTERS, Examples, Queries, Router
from routeyard.pipelines.routers.base import model_means, squared_error
from routeyard.pipelines.routers.neighbours import KNN, nearest
from routeyard.pipelines.routers.references import UniformRandom

#: Modules of the room that hold no router.
LEARNERS = ("kmeans", "knn", "mf", "mlp")


def planted(n: int = 500, m: int = 3, d: int = 12, seed: int = 0, missing: float = 0.0) -> Examples:
    rng = np.random.default_rng(seed)
    task = rng.integers(0, m, n)
    centres = np.eye(d, dtype=np.float32)[:m]
    vectors = centres[task] + 0.1 * rng.normal(size=(n, d)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chance = np.where(task[:, None] == np.arange(m), 0.9, 0.3)
    labels = (rng.random((n, m)) < chance).astype(float)
    labels[rng.random((n, m)) < missing] = np.nan
    ids = tuple(f"q{seed}-{i}" for i in range(n))
    shown = ("margin", "entropy", "max_logit", "self_assessment", "semantic_entropy[discrete]")
    queries = Queries(
        ids, np.array([f"t{t}" for t in task]), vectors.astype(np.float32),
        signals=dict.fromkeys(shown, chance), hidden=vectors[:, None, :].astype(np.float32),
        hidden_of="m0",
    )  # fmt: skip
    descriptors = {"logit_footprint": np.eye(m, 4, dtype=np.float32)}
    arms = Arms(np.zeros(m), np.resize([50.0, np.nan], m), np.ones(m), np.ones(m))
    names = tuple(f"m{k}" for k in range(m))
    return Examples(queries, names, labels, descriptors=descriptors, arms=arms)


def with_validation(train: Examples, held: Examples) -> Examples:
    return dataclasses.replace(train, validation=held)


@pytest.fixture(scope="module")
def train() -> Examples:
    return with_validation(planted(500), planted(150, seed=1))


def accuracy(router: Router, test: Examples) -> float:
    choice = np.argmax(router.scores(test.queries), axis=1)
    return float(test.labels[np.arange(len(choice)), choice].mean())


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_find_the_specialists(name: str, train: Examples) -> None:
    router = ROUTERS.get(name)()
    router.fit(train)
    test = planted(300, seed=2)
    assert isinstance(router, Router)
    assert accuracy(router, test) > 0.8 > test.labels.mean(axis=0).max() + 0.2


@pytest.mark.parametrize("name", LEARNERS)
def test_missing_labels_teach_nothing(name: str) -> None:
    # A third of the labels gone must not pull scores towards wrong.
    part = with_validation(planted(600, missing=0.33), planted(150, seed=1, missing=0.33))
    router = ROUTERS.get(name)()
    router.fit(part)
    test = planted(300, seed=2)
    assert accuracy(router, test) > 0.8
    assert abs(router.scores(test.queries).mean() - test.labels.mean()) < 0.05


@pytest.mark.parametrize("name", sorted(ROUTERS.builtin))
def test_the_same_fit_gives_the_same_scores(name: str) -> None:
    test = planted(40, seed=2)
    few = with_validation(planted(120), planted(40, seed=1))
    a, b = (ROUTERS.get(name)() for _ in range(2))
    a.fit(few)
    b.fit(few)
    found = a.scores(test.queries)
    assert found.shape == (40, 3)
    assert np.isfinite(found).all()
    assert np.array_equal(found, b.scores(test.queries))


@pytest.mark.parametrize("name", LEARNERS)
def test_without_validation_the_defaults_hold(name: str) -> None:
    router = ROUTERS.get(name)()
    router.fit(planted(300))
    assert accuracy(router, planted(200, seed=2)) > 0.75


@pytest.mark.parametrize("name", LEARNERS)
def test_without_embeddings_the_error_says_what_to_do(name: str) -> None:
    bare = Examples(Queries(("q",), np.array(["t"])), ("m",), np.ones((1, 1)))
    with pytest.raises(BadInput, match="needs embeddings") as caught:
        ROUTERS.get(name)().fit(bare)
    # Trap: --embed is no Python.
    assert "--embed (from Python: embed=True)" in str(caught.value)


def test_hyperparameters_are_chosen_on_validation_only() -> None:
    # Validation labels that sit between: many neighbours win, whatever train itself fits best.
    train = planted(400)
    middle = np.full((100, 3), 0.5)
    held = Examples(planted(100, seed=4).queries, train.model_ids, middle)
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
    test = planted(50)
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
