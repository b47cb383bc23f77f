"""Which cells the protocol runs, and which setting wins."""

from __future__ import annotations

import numpy as np

from routeyard.pipelines.evaluate.settings import FIRST_SEED, MORE_SEEDS
from routeyard.pipelines.evaluate.zoo.run import (
    CellResult,
    ZooCell,
    first_stage,
    ranking,
    second_stage,
)


def result(k: int, seed: int, stage: int, validation: float, test: float) -> CellResult:
    cell = ZooCell("r", "e", f'{{"k": {k}}}', seed, stage)
    return CellResult(cell, validation, test, 1.0, 1.0, 100.0 + k)


def test_the_best_five_of_stage_one_go_on_with_four_seeds() -> None:
    cells = first_stage("r", "e", [{"k": k} for k in range(7)])
    assert {c.seed for c in cells} == {FIRST_SEED}
    values = [0.1, 0.7, 0.7, 0.2, 0.6, 0.5, 0.4]
    later = second_stage(
        [CellResult(c, v, 0.0, 0, 0, 0) for c, v in zip(cells, values, strict=True)]
    )
    assert [c.setting["k"] for c in later[:: len(MORE_SEEDS)]] == [1, 2, 4, 5, 6]
    assert len(later) == 5 * len(MORE_SEEDS)
    assert {c.seed for c in later} == set(MORE_SEEDS)
    assert {c.stage for c in later} == {2}


def test_the_winner_is_chosen_on_validation_of_stage_two_and_never_on_test() -> None:
    # Setting 0 shone in stage 1 and on test; setting 1 is better on validation with other seeds.
    results = [result(0, FIRST_SEED, 1, 0.9, 0.99), result(1, FIRST_SEED, 1, 0.5, 0.1)]
    results += [result(0, seed, 2, 0.4, 0.99) for seed in MORE_SEEDS]
    results += [result(1, seed, 2, 0.6, 0.2) for seed in MORE_SEEDS]
    found = ranking(results)
    assert found is not None
    assert found.winner.setting == {"k": 1}
    # Mean and sd over the five seeds of the setting, that of stage 1 among them.
    test = np.array([0.1, 0.2, 0.2, 0.2, 0.2])
    assert (found.mean, found.sd, found.seeds) == (test.mean(), test.std(ddof=1), 5)
    assert found.peak_mb == 101.0


def test_a_router_without_chance_is_chosen_in_stage_one() -> None:
    found = ranking([result(k, FIRST_SEED, 1, v, v) for k, v in enumerate((0.2, 0.5, 0.5))])
    assert found is not None
    assert (found.winner.setting["k"], found.mean, found.sd, found.seeds) == (1, 0.5, 0.0, 1)


def test_a_router_that_refused_has_no_standing() -> None:
    cell = first_stage("r", "e", [{}])[0]
    assert ranking([CellResult(cell, None, None, 0.0, 0.0, 1.0, "needs embeddings")]) is None
