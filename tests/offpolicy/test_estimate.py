"""Off-policy estimates equal plain loops, cover the truth, and are refused without a basis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.logged.off_policy import coverage
from routeyard.extensions.traffic.off_policy import (
    CannotTell,
    Decisions,
    estimate_policy,
    expected_rewards,
    probability_of_no_history,
)
from routeyard.pipelines.common.errors import BadInput


def logged(n: int = 400, seed: int = 0, **changes: Any) -> Decisions:
    generator = np.random.default_rng(seed)
    easy = generator.random(n) < 0.5
    logging = np.where(easy[:, None], [0.8, 0.2], [0.3, 0.7])
    arm = (generator.random(n) > logging[:, 0]).astype(np.int64)
    reward = (generator.random(n) < np.where(arm == 1, 0.8, 0.5)).astype(float)
    target = np.where(easy[:, None], [1.0, 0.0], [0.0, 1.0])
    made = Decisions(
        task=np.arange(n) // 2,
        arm=arm,
        reward=reward,
        propensity=logging[np.arange(n), arm],
        target=target,
        expected=np.tile([0.5, 0.8], (n, 1)),
        time=np.arange(n).astype(float),
    )
    return replace(made, **changes)


def test_estimates_equal_plain_loops() -> None:
    one = logged()
    assert one.propensity is not None
    assert one.expected is not None
    ips = snips_of = robust = squares = 0.0
    for i in range(len(one)):
        w = one.target[i, one.arm[i]] / one.propensity[i]
        ips += w * one.reward[i]
        snips_of += w
        squares += w * w
        model = sum(one.target[i, a] * one.expected[i, a] for a in range(2))
        robust += model + w * (one.reward[i] - one.expected[i, one.arm[i]])
    found = estimate_policy(one, resamples=200)
    by_name = {value.estimator: value for value in found.values}
    assert by_name["ips"].value == pytest.approx(ips / 400)
    assert by_name["snips"].value == pytest.approx(ips / snips_of)
    assert by_name["dr"].value == pytest.approx(robust / 400)
    assert found.effective == pytest.approx(snips_of**2 / squares)
    assert (found.tasks, found.decisions, found.least_propensity) == (200, 400, 0.2)
    assert all(value.low < value.value < value.high for value in found.values)


def test_tasks_are_resampled_and_not_decisions() -> None:
    # Each decision four times over, as one task: nothing more is known, so no interval narrows.
    one = logged()
    four = Decisions(
        *(np.repeat(getattr(one, name), 4, axis=0)
          for name in ("task", "arm", "reward", "propensity", "target", "expected")),
        time=None,
    )  # fmt: skip
    width, same = (
        {v.estimator: v.high - v.low for v in estimate_policy(d, resamples=500).values}
        for d in (one, four)
    )
    assert same == pytest.approx(width)
    apart = replace(four, task=np.arange(len(four)))
    narrow = {v.estimator: v.high - v.low for v in estimate_policy(apart, resamples=500).values}
    assert all(narrow[name] < 0.7 * width[name] for name in width)


def test_intervals_cover_the_truth_in_1000_simulations() -> None:
    # At a least propensity of 0.05; the command reports 0.01 too.
    found = coverage(0.05, 1_000, 2_000, per_task=1, resamples=500, seed=0)
    for name in ("ips", "snips", "dr"):
        assert 0.93 <= found[name]["coverage"] <= 0.97, (name, found[name])


def test_without_propensities_nothing_is_estimated() -> None:
    with pytest.raises(CannotTell, match="400 of 400 decisions have no propensity"):
        estimate_policy(logged(propensity=None))
    some = logged()
    assert some.propensity is not None
    partly = np.where(np.arange(400) == 3, np.nan, some.propensity)
    with pytest.raises(CannotTell, match="1 of 400 decisions have no propensity"):
        estimate_policy(replace(some, propensity=partly))
    with pytest.raises(CannotTell, match="could have gone otherwise"):
        estimate_policy(logged(propensity=np.ones(400)))


def test_probabilities_are_checked() -> None:
    with pytest.raises(BadInput, match=r"\(0, 1\]; found 50 to 50"):
        estimate_policy(logged(propensity=np.full(400, 50.0)))
    with pytest.raises(BadInput, match="sum to 1"):
        estimate_policy(logged(target=np.ones((400, 2))))


def test_a_policy_outside_the_log_is_refused() -> None:
    # A third arm that was never chosen: no weight, so nothing is known of it.
    nowhere = np.tile([0.0, 0.0, 1.0], (400, 1))
    with pytest.raises(CannotTell, match="decisions that the log never made"):
        estimate_policy(logged(target=nowhere, expected=None))
    # Propensities that are off by two show in the mean weight.
    one = logged()
    assert one.propensity is not None
    with pytest.raises(CannotTell, match="not those that were used"):
        estimate_policy(replace(one, propensity=one.propensity / 2))


def bandit(n: int, *, learns: bool, seed: int) -> Decisions:
    """Two arms, one of which gets the more traffic the better it did, or a share of its own."""
    generator = np.random.default_rng(seed)
    rewards: list[list[float]] = [[1.0], [1.0]]
    rows = []
    for _ in range(n):
        means = [sum(own) / len(own) for own in rewards]
        first = generator.uniform(0.2, 0.8)
        if learns:
            first = min(0.9, max(0.1, 0.5 + 2 * (means[0] - means[1])))
        arm = int(generator.random() > first)
        reward = float(generator.random() < (0.5, 0.6)[arm])
        rewards[arm].append(reward)
        rows.append((arm, reward, (first, 1 - first)[arm]))
    arm, reward, propensity = map(np.array, zip(*rows, strict=True))
    return Decisions(
        np.arange(n), arm.astype(np.int64), reward, propensity,
        np.tile([0.5, 0.5], (n, 1)), time=np.arange(n).astype(float),
    )  # fmt: skip


def test_propensities_of_a_bandit_are_refused_unless_stated() -> None:
    learned = bandit(1_000, learns=True, seed=1)
    with pytest.raises(CannotTell, match="propensities depend on history"):
        estimate_policy(learned)
    assert estimate_policy(learned, propensities="context", resamples=200).values


def test_random_propensities_are_rarely_refused() -> None:
    ps = [probability_of_no_history(bandit(400, learns=False, seed=s))[0] for s in range(40)]
    assert sum(p < 0.05 for p in ps) <= 6
    assert min(ps) > 0.001


def test_missing_outcomes_and_few_effective_decisions_are_said() -> None:
    one = logged()
    reward = np.where(np.arange(400) < 350, one.reward, np.nan)
    found = estimate_policy(replace(one, reward=reward), resamples=200)
    assert found.unknown == 50
    assert [says.partition(":")[0] for says in found.cautions] == [
        "50 decisions without outcome are left out"
    ]
    few = estimate_policy(logged(120), resamples=200)
    assert "too narrow" in few.cautions[0]
    with pytest.raises(CannotTell, match="40 of 40 decisions have an outcome"):
        estimate_policy(logged(40))


def test_the_reward_model_never_learns_from_a_decisions_own_task() -> None:
    # Outcomes that only the own task tells: a model that peeked would predict them.
    generator = np.random.default_rng(0)
    task = np.repeat(np.arange(100), 4)
    reward = np.repeat(generator.random(100), 4)
    features = np.repeat(np.eye(100), 4, axis=0)
    found = expected_rewards(features, np.zeros(400, np.int64), reward, task, 2, ridge=1e-6)
    assert abs(np.corrcoef(found[:, 0], reward)[0, 1]) < 0.3
    # An arm that was never chosen is expected to do as all do.
    assert np.abs(found[:, 1] - reward.mean()).max() < 0.2


def test_outcomes_that_are_all_equal_are_said() -> None:
    found = estimate_policy(logged(reward=np.ones(400)), resamples=200)
    assert any("all outcomes" in one for one in found.cautions)
    assert not any("all outcomes" in one for one in estimate_policy(logged()).cautions)
