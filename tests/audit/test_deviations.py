from __future__ import annotations

import numpy as np
import pytest

from routeyard.pipelines.zoo.deviations import changed, deviations


def matrix(seed: int, n: int = 600) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels of five models, tasks, and a feature that says something of the best model."""
    rng = np.random.default_rng(seed)
    tasks = np.array(["algebra", "botany", "chess"])[np.arange(n) % 3]
    hint = rng.normal(0, 1, n)
    logit = np.array([0.8, 0.6, 0.3, 0.0, -0.5])[None, :] + np.outer(hint, [0.0, 1.0, -1.0, 0.5, 0])
    return (rng.random((n, 5)) < 1 / (1 + np.exp(-logit))).astype(float), tasks, hint


@pytest.mark.parametrize("seed", range(10))
def test_a_router_that_reads_the_question_is_no_finding(seed: int) -> None:
    labels, tasks, hint = matrix(seed)
    choice = np.where(hint > 0.7, 1, np.where(hint < -0.7, 2, 0))
    found = deviations(labels, choice, tasks)
    assert found.switches > 200
    assert not found.fails, found


@pytest.mark.parametrize("seed", range(10))
def test_a_fixed_model_with_swapped_choices_fails(seed: int) -> None:
    # Swapped on 35 % of the questions: to a model that is right wherever the habit is wrong.
    labels, tasks, _ = matrix(seed)
    rng = np.random.default_rng(seed)
    choice = np.zeros(len(labels), np.int64)
    for row in rng.choice(len(labels), int(0.35 * len(labels)), replace=False):
        right = np.flatnonzero(labels[row] == 1)
        choice[row] = rng.choice(right) if len(right) else 0
    found = deviations(labels, choice, tasks)
    assert found.fails, found
    assert found.won == found.told >= 20


def test_random_and_constant_choices_are_no_finding() -> None:
    labels, tasks, _ = matrix(0)
    rng = np.random.default_rng(0)
    assert not deviations(labels, rng.integers(0, 5, len(labels)), tasks).fails
    constant = deviations(labels, np.zeros(len(labels), np.int64), tasks)
    assert (constant.switches, constant.told, constant.p) == (0, 0, 1.0)


def test_changes_towards_right_answers_fail_and_a_retrained_router_does_not() -> None:
    labels, _, hint = matrix(1)
    before = np.where(hint > 0.7, 1, 0)
    assert not changed(labels, before, np.where(hint > 0.2, 1, 0)).fails
    now = before.copy()
    wrong = np.flatnonzero(labels[np.arange(len(now)), now] == 0)[:60]
    now[wrong] = labels[wrong].argmax(axis=1)
    assert changed(labels, before, now).fails
