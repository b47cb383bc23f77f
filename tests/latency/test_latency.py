"""Percentiles are those of a plain bootstrap; promises and deadlines say by how much they fail."""

from __future__ import annotations

import numpy as np
import pytest

from routeyard.extensions.traffic.latency import (
    by_group,
    fit_deadline,
    paired_percentiles,
    percentiles,
    split_by_time,
    under_promise,
)
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws


def test_intervals_are_those_of_a_plain_bootstrap() -> None:
    generator = np.random.default_rng(0)
    seconds = generator.lognormal(0, 1, 600)
    found = percentiles(seconds, resamples=8_000)
    picks = generator.integers(0, 600, (8_000, 600))
    plain = np.quantile(seconds[picks], [0.5, 0.95, 0.99], axis=1)
    for one, drawn in zip(found, plain, strict=True):
        assert one.value == np.quantile(seconds, one.share)
        low, high = np.quantile(drawn, [0.025, 0.975])
        # Both are random: within the noise of their own ends, a few neighbours in the sample.
        near = np.quantile(drawn, [0.020, 0.030, 0.970, 0.980])
        assert near[0] <= one.low <= near[1], (one, low)
        assert near[2] <= one.high <= near[3], (one, high)


def test_tasks_are_resampled_together_as_in_a_loop() -> None:
    generator = np.random.default_rng(1)
    task = np.repeat(np.arange(40), generator.integers(1, 6, 40))
    seconds = generator.exponential(1, len(task)) + task % 5
    found = percentiles(seconds, groups=task, resamples=300, seed=3)
    order = np.argsort(seconds, kind="stable")
    counts = np.concatenate(
        [block for _, block in Draws(len(task), 300, 3, groups=task[order]).blocks()]
    ).astype(int)
    plain = [np.quantile(np.repeat(seconds[order], row), [0.5, 0.95, 0.99]) for row in counts]
    ends = np.quantile(plain, [0.025, 0.975], axis=0)
    assert [one.low for one in found] == pytest.approx(ends[0])
    assert [one.high for one in found] == pytest.approx(ends[1])


def test_a_percentile_that_too_few_calls_bound_is_said_to_be_open() -> None:
    # 0.99^300 > 0.025: the slowest of 300 calls may well lie below the true p99.
    seconds = np.arange(300.0)
    p50, _, p99 = percentiles(seconds)
    assert (p50.capped, p99.capped) == (False, True)
    assert "or more" in str(p99)
    (nothing,) = percentiles(np.array([np.nan]), (0.5,))
    assert nothing.calls == 0
    assert np.isnan(nothing.value)


def test_by_group_keeps_groups_apart() -> None:
    found = by_group(np.array([1.0, 10, 2, 20, 3]), np.array(["a", "b", "a", "b", "a"]), (0.5,))
    assert {name: rows[0].value for name, rows in found.items()} == {"a": 2.0, "b": 15.0}


def test_promises_count_the_routers_own_time() -> None:
    seconds = np.full(1_000, 1.8)
    seconds[:30] = 5
    score, cost = np.ones(1_000), np.full(1_000, 0.01)
    kept = under_promise(seconds, score, cost, 2.0)
    assert kept.kept == "yes"
    assert kept.violations[0] == pytest.approx(0.03)
    assert kept.accuracy_in_time[0] == pytest.approx(0.97)
    slow = under_promise(seconds, score, cost, 2.0, decision_s=0.3)
    assert (slow.kept, slow.excess_s) == ("no", pytest.approx(0.1))
    assert "broken by 0.1 s" in slow.lines()[0]


def test_a_promise_at_its_limit_cannot_be_told() -> None:
    seconds = np.where(np.arange(200) < 10, 5.0, 1.0)  # 5 % late: the percentile is at the edge
    nan = np.full(200, np.nan)
    found = under_promise(seconds, nan, nan, 2.0)
    assert found.kept == "cannot be told"
    assert len(found.lines()) == 2  # neither accuracy nor cost is invented


def served(n: int, late: tuple[float, ...], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(scores, seconds) of arms that are the better the more often they are late."""
    generator = np.random.default_rng(seed)
    arms = len(late)
    scores = np.linspace(0.5, 0.9, arms) + generator.normal(0, 0.2, (n, arms))
    seconds = np.where(generator.random((n, arms)) < late, 4.0, 1.0)
    return scores, seconds


def test_a_deadline_holds_on_held_out_hours() -> None:
    rule = fit_deadline(*served(2_000, (0.0, 0.03, 0.2), 0), 2.0)
    assert rule.attainable
    assert rule.weight > 0
    scores, seconds = served(2_000, (0.0, 0.03, 0.2), 1)
    arm = rule.choose(scores)
    chosen = seconds[np.arange(2_000), arm]
    assert (chosen > 2).mean() <= 0.05
    # It is no coward: the slow arm still answers where it is worth it.
    assert (arm == 2).mean() > 0.05
    # Without the rule the promise is broken.
    assert (seconds[np.arange(2_000), scores.argmax(axis=1)] > 2).mean() > 0.08


def test_a_deadline_that_no_arm_keeps_is_said() -> None:
    scores, seconds = served(500, (0.2, 0.3), 0)
    rule = fit_deadline(scores, seconds, 2.0)
    assert not rule.attainable
    assert set(rule.choose(scores)) == {0}  # the arm that is late least often
    unknown = np.column_stack([seconds, np.full(500, np.nan)])
    rule = fit_deadline(np.column_stack([scores, np.full(500, 9.0)]), unknown, 2.0)
    assert 2 not in rule.choose(np.column_stack([scores, np.full(500, 9.0)]))


def test_hours_are_never_split() -> None:
    time = np.array([0.0, 10, 3599, 3600, 7200, 7300, np.nan])
    train, test = split_by_time(time)
    assert train.tolist() == [True, True, True, False, False, False, False]
    assert test.tolist() == [False, False, False, True, True, True, False]


def test_no_violation_in_a_few_calls_is_not_none_for_sure() -> None:
    found = under_promise(np.full(45, 1.0), np.ones(45), np.full(45, np.nan), 2.0)
    # 1 − 0.025^(1/45), and nothing of a promise of 95 % is known from 45 calls.
    assert found.violations == pytest.approx((0.0, 0.0, 1 - 0.025 ** (1 / 45)))
    assert found.accuracy == pytest.approx((1.0, 0.025 ** (1 / 45), 1.0))
    assert found.kept == "cannot be told"
    assert "too few calls" in found.lines()[0]


def test_differences_of_two_policies_are_paired() -> None:
    generator = np.random.default_rng(2)
    shared = generator.lognormal(0, 1, 400)
    slower = shared + np.where(np.arange(400) % 50 == 0, 3.0, 0.1)
    slower[7] = np.nan  # left out of both
    rows = np.arange(400)
    found = paired_percentiles((slower, rows), (shared[::-1], rows[::-1]), resamples=300, seed=5)
    kept = rows != 7
    counts = np.concatenate([b for _, b in Draws(399, 300, 5, groups=rows[kept]).blocks()])
    plain = np.array([
        [np.quantile(np.repeat(values[kept], row), q) for q in (0.5, 0.95, 0.99)]
        for values in (slower, shared) for row in counts.astype(int)
    ]).reshape(2, 300, 3)  # fmt: skip
    for k, one in enumerate(found):
        ends = np.quantile(plain[0, :, k] - plain[1, :, k], [0.025, 0.975])
        assert (one.low, one.high) == pytest.approx(tuple(ends))
        assert one.difference == pytest.approx(
            np.quantile(slower[kept], one.first.share) - np.quantile(shared[kept], one.first.share)
        )
    # Unpaired, the medians' intervals would overlap by far.
    assert found[0].first.low < found[0].second.high
    assert found[0].low > 0
    few = paired_percentiles((slower[:300], rows[:300]), (shared[:300], rows[:300]), resamples=100)
    assert [np.isnan(one.difference) for one in few] == [False, False, True]
