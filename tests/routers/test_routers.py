"""What reference routers choose, and names of routers."""

from __future__ import annotations

import numpy as np
import pytest

from routeyard.pipelines.common.errors import UnknownName
from routeyard.pipelines.routers import ROUTERS, Examples, Queries
from routeyard.pipelines.routers.base import model_means, squared_error
from routeyard.pipelines.routers.neighbours import KNN, nearest
from routeyard.pipelines.routers.references import UniformRandom
from tests.routers.planted import planted, with_validation


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
