"""The replay of informative rounds: its figures hold together."""

from __future__ import annotations

import numpy as np

from benchmarks.studies import informative


def test_rounds_are_compared_with_uniform_coverage() -> None:
    random = np.random.default_rng(0)
    ease = random.normal(0, 0.3, 240)
    chances = [np.clip(0.2 + 0.12 * k + ease, 0, 1) for k in range(6)]
    scores = np.column_stack([(random.random(240) < chance).astype(float) for chance in chances])
    tasks = np.repeat([0, 1], 120)
    uniform = informative.uniform_widths(scores, tasks, seed=0)
    wide, narrow = (
        informative.replay(scores, tasks, budget, uniform, range(3)) for budget in (0.2, 0.5)
    )
    for made in (wide, narrow):
        low, high = informative.mean_interval(made.saved, 0)
        assert low <= made.saved.mean() <= high
        assert 0.2 < made.saved.mean() < 5
        assert made.inside.mean() > 0.8
    assert narrow.width.mean() < wide.width.mean()


def test_everything_asked_leaves_no_pair_open() -> None:
    random = np.random.default_rng(1)
    scores = (random.random((90, 4)) < [0.3, 0.5, 0.52, 0.9]).astype(float)
    shares, widths = informative.uniform_widths(scores, np.arange(90) % 3, seed=0)
    assert shares[-1] == 1
    assert widths[-1] == 0
    assert (np.diff(widths) <= 0).all()
