"""Rounds that part models: unbiased, within their budget, and the same again."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from routeyard.pipelines.collect.informative import Z, collect_informatively
from routeyard.schemas.recipe.collect import Collect, Informative

N, ABILITY = 600, np.array([0.9, 0.75, 0.55, 0.53, 0.3])


def world(seed: int = 0) -> tuple[Any, Any]:
    """Scores (questions, models) that depend on how easy a question is, and its task."""
    random = np.random.default_rng(seed)
    tasks = random.integers(0, 4, N)
    ease = random.normal(0, 0.25, N)[:, None] + np.linspace(-0.1, 0.1, 4)[tasks][:, None]
    return tasks, (random.random((N, 5)) < np.clip(ABILITY + ease, 0.02, 0.98)).astype(float)


def ask(scores: Any) -> Any:
    return lambda asked: np.where(asked, scores, np.nan)


def test_estimates_are_unbiased_and_their_intervals_hold() -> None:
    tasks, scores = world()
    truth, errors, inside, plain = scores.mean(axis=0), [], [], []
    for seed in range(60):
        plan = Informative(resolve=0.05, pilot=40)
        found = collect_informatively(tasks, 5, plan, ask(scores), rounds=8, seed=seed)
        errors.append(found.weighted - truth)
        inside.append(np.abs(errors[-1]) <= Z * found.standard_error + 1e-12)
        plain.append(found.plain - truth)
    off = np.abs(np.mean(errors, axis=0)) / (np.std(errors, axis=0) / np.sqrt(60))
    assert off.max() < 4, off  # standard errors of the mean over 60 seeds
    assert 0.9 < np.mean(inside) < 0.99
    assert np.std(errors) < 0.05


def test_a_model_that_stands_apart_is_asked_less_than_two_that_do_not() -> None:
    tasks, scores = world()
    plan = Informative(resolve=0.02, pilot=60)
    found = collect_informatively(tasks, 5, plan, ask(scores), seed=1)
    asked = found.asked.sum(axis=0)
    assert asked[4] < asked[2]
    assert asked[0] < asked[3]
    assert not found.unresolved(0.02)[0, 4]
    # Models leave and never come back.
    sizes = [set(one.models.tolist()) for one in found.rounds]
    assert all(later <= earlier for earlier, later in pairwise(sizes))


def test_when_all_is_asked_the_estimate_is_the_mean() -> None:
    tasks, scores = world()
    plan = Informative(resolve=1e-9, pilot=200)
    same = ask(np.tile(scores[:, :1], 5))
    found = collect_informatively(tasks, 5, plan, same, growth=2, rounds=100)
    assert found.asked.all()  # equal models are never told apart
    assert found.plain == pytest.approx(np.full(5, scores[:, 0].mean()))
    assert not found.unresolved(1e-9).any()


def test_no_more_calls_than_stated_and_the_same_seed_asks_the_same() -> None:
    tasks, scores = world()
    plan = Informative(resolve=1e-6, pilot=50, calls=900)
    found = [collect_informatively(tasks, 5, plan, ask(scores), seed=3) for _ in range(2)]
    assert found[0].asked.sum() <= 900
    assert (found[0].asked == found[1].asked).all()
    assert (found[0].weighted == found[1].weighted).all()
    other = collect_informatively(tasks, 5, plan, ask(scores), seed=4)
    assert (other.asked != found[0].asked).any()


def test_a_question_without_a_label_is_not_wrong() -> None:
    tasks, scores = world()
    scores[::3, 0] = np.nan
    plan = Informative(resolve=0.03, pilot=100)
    found = collect_informatively(tasks, 5, plan, ask(scores), growth=2)
    assert found.weighted[0] == pytest.approx(np.nanmean(scores[:, 0]), abs=0.06)


def test_questions_of_the_dense_slice_are_asked_of_all() -> None:
    tasks, scores = world()
    always = np.arange(N) < 30
    found = collect_informatively(
        tasks, 5, Informative(resolve=0.1, pilot=30), ask(scores), always=always
    )
    assert found.asked[:30].all()


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ValueError, match="recorded"):
        Collect.model_validate({"strategy": "informative", "provider": "recorded", "recorded": []})
    with pytest.raises(ValueError, match="coverage"):
        Collect.model_validate({"strategy": "informative", "coverage": {"share": 0.5}})
