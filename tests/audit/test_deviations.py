from __future__ import annotations

import numpy as np
import pytest

from routeyard.pipelines.evaluate.zoo.submissions import changed, deviations


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
    assert found.won == found.discordant >= 20


def test_random_and_constant_choices_are_no_finding() -> None:
    labels, tasks, _ = matrix(0)
    rng = np.random.default_rng(0)
    assert not deviations(labels, rng.integers(0, 5, len(labels)), tasks).fails
    constant = deviations(labels, np.zeros(len(labels), np.int64), tasks)
    assert (constant.switches, constant.discordant, constant.p) == (0, 0, 1.0)


def halves(seed: int) -> tuple:
    """Labels and hints of 400 test questions; what `changed` is given beside the choices."""
    labels, tasks, hint = matrix(seed, 1_000)
    return labels[:400], hint[:400], (tasks[:400], labels[400:], tasks[400:])


def towards_right(labels: np.ndarray, before: np.ndarray, many: int, seed: int) -> np.ndarray:
    """Choices of which so many wrong ones were exchanged for right ones."""
    rng = np.random.default_rng(seed)
    now = before.copy()
    wrong = (labels[np.arange(len(now)), now] == 0) & (labels.max(axis=1) == 1)
    for row in rng.permutation(np.flatnonzero(wrong))[:many]:
        now[row] = rng.choice(np.flatnonzero(labels[row]))
    return now


def test_changes_towards_right_answers_fail() -> None:
    for seed in range(20):
        labels, hint, known = halves(seed)
        before = np.where(hint > 0.7, 1, 0)
        found = changed(labels, before, towards_right(labels, before, 40, seed), *known)
        assert found.fails, found
        assert (found.gained, found.lost) == (40, 0)


def test_a_better_router_does_not_fail_however_much_better_it_is() -> None:
    failed = pairs = 0
    for seed in range(20):
        labels, hint, known = halves(seed)
        rng = np.random.default_rng(seed)
        honest = [
            np.full(400, 4), np.zeros(400, np.int64), rng.integers(0, 5, 400),
            np.where(hint > 0.7, 1, np.where(hint < -0.7, 2, 0)), np.where(hint > 0.2, 1, 4),
        ]  # fmt: skip
        for before in honest:
            for now in honest:
                failed += changed(labels, before, now, *known).fails
                pairs += before is not now
    assert pairs == 400
    assert failed <= 0.05 * pairs
    # From a weak model to one that is nearly always right: every change is a gain, or none.
    rng = np.random.default_rng(0)
    labels = (rng.random((900, 2)) < [0.1, 0.97]).astype(float)
    tasks = np.array(["a"] * 900)
    weak, strong = np.zeros(300, np.int64), np.ones(300, np.int64)
    found = changed(labels[:300], weak, strong, tasks[:300], labels[300:], tasks[300:])
    assert found.gained > 0.8 * 300
    assert not found.fails, found
