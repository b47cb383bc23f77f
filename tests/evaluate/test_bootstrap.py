from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeyard.pipelines.evaluate.certificate import holm, mcnemar, seed_spread
from routeyard.pipelines.evaluate.metrics import bootstrap
from routeyard.pipelines.evaluate.metrics import bootstrap as kept
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws, Numbers, interval, p_value


@given(st.integers(1, 20), st.integers(1, 5), st.integers(0, 100))
@settings(deadline=None)
def test_means_equal_gathering_the_drawn_rows(n, k, seed) -> None:
    rng = np.random.default_rng(seed)
    values = rng.random((n, k))
    values[rng.random((n, k)) < 0.2] = np.nan
    draws = Draws(n, 7, seed)
    generator = np.random.Generator(np.random.PCG64(seed))
    drawn = generator.integers(0, n, size=(7, n))
    found = draws.means(values)
    for i in range(7):
        part = values[drawn[i]]
        for c in range(k):
            known = part[~np.isnan(part[:, c]), c]
            want = known.mean() if len(known) else np.nan
            assert found[i, c] == pytest.approx(want, abs=1e-12, nan_ok=True)


def test_groups_are_drawn_whole() -> None:
    groups = np.array([5, 5, 5, 9, 2])
    for _, counts in Draws(5, 50, 0, groups).blocks():
        assert np.all(counts[:, 0] == counts[:, 1])
        assert np.all(counts[:, [0, 3, 4]].sum(axis=1) == 3)


def test_draws_do_not_depend_on_block_size_or_keeping(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).random((30, 3))
    whole = Draws(30, 40, 3).means(values)
    # An odd number of draws: a generator hands out halves of what it makes.
    groups = np.arange(35) // 5 * 3
    counts = [np.vstack([part for _, part in d.blocks()]) for d in _odd(groups)]
    monkeypatch.setattr(bootstrap, "BLOCK_BYTES", 8 * 30 * 7)
    monkeypatch.setattr(bootstrap, "TOGETHER", 3)
    assert np.allclose(Draws(30, 40, 3).means(values), whole, atol=1e-12)
    monkeypatch.setattr(bootstrap, "KEPT_CELLS", 0)
    assert np.allclose(Draws(30, 40, 3).means(values), whole, atol=1e-12)
    again = [np.vstack([part for _, part in d.blocks()]) for d in _odd(groups)]
    assert all(np.array_equal(a, b) for a, b in zip(counts, again, strict=True))


def _odd(groups: np.ndarray) -> list[Draws]:
    return [Draws(31, 9, 4), Draws(35, 9, 4, groups)]


def test_sums_of_labels_are_those_of_float64() -> None:
    rng = np.random.default_rng(0)
    largest = bootstrap._EXACT // 300
    for groups in (None, np.repeat(np.arange(30), 10)):
        draws = Draws(300, 50, 1, groups)
        counts = np.vstack([part for _, part in draws.blocks()])
        for most in (1, largest, largest + 1, 2**40 + 1):
            values = most * rng.integers(0, 2, (300, 3)).astype(float)
            assert np.array_equal(draws.sums(values), counts @ values)
            assert draws._kind(values) is (np.float32 if most <= largest else np.float64)
    assert draws._kind(np.array([[0.5]])) is np.float64
    uneven = Draws(300, 50, 1, np.minimum(np.arange(300), 200))  # up to 201 groups of 100
    assert uneven._kind(np.full((300, 1), largest)) is np.float64


@pytest.mark.parametrize("below", [1, 2, 7, 51_111, 3 << 29])
def test_numbers_are_those_of_the_generator(below: int) -> None:
    # Below 3 · 2²⁹ every fourth draw is left out.
    n = 100_001
    want = np.random.Generator(np.random.PCG64(5)).integers(0, below, size=n, dtype=np.int32)
    numbers, found = Numbers(5, below), np.empty(0, np.int64)
    while len(found) < n:
        found = np.append(found, numbers.some(n - len(found)))
    assert np.array_equal(found, want)


def test_a_column_is_summed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    summed = []
    product = Draws._product

    def counting(self: Draws, values: np.ndarray, kind: object) -> np.ndarray:
        summed.append(values.shape[1])
        return product(self, values, kind)

    monkeypatch.setattr(Draws, "_product", counting)
    labels = np.random.default_rng(0).integers(0, 2, (50, 4)).astype(float)
    labels[:, 3] = labels[:, 0]
    costs = np.array([1, 2**30, -(2**30), 3]) * labels
    draws = Draws(50, 20, 7)
    counts = np.vstack([part for _, part in draws.blocks()])
    assert np.array_equal(draws.sums(labels), counts @ labels)
    assert np.array_equal(Draws(50, 20, 7).sums(labels[:, ::-1]), counts @ labels[:, ::-1])
    assert summed == [3]
    assert np.array_equal(draws.sums(costs), counts @ costs)
    assert summed == [3, 1, 2]  # 3 · label is small, 2³⁰ · label is not; 1 · label is known
    mixed = labels / 3
    draws.sums(mixed), draws.sums(mixed)
    assert summed[3:] == [4, 4]  # what is not exact depends on what is beside it
    monkeypatch.setattr(kept, "MOST_BYTES", 0)
    full = Draws(50, 20, 8)
    assert np.array_equal(full.sums(labels), full.sums(labels))
    assert summed[5:] == [3, 3]


def test_interval_covers_the_mean_as_often_as_it_says() -> None:
    rng, hits = np.random.default_rng(0), 0
    for trial in range(200):
        sample = (rng.random((80, 1)) < 0.4).astype(float)
        low, high = interval(Draws(80, 400, trial).means(sample)[:, 0])
        hits += low <= 0.4 <= high
    assert 0.90 <= hits / 200 <= 0.99


def test_p_values_of_no_difference_are_not_small() -> None:
    assert p_value(np.zeros(100)) == 1.0
    assert p_value(np.linspace(1, 2, 9999)) == pytest.approx(2 / 10_000)
    assert np.isnan(p_value(np.array([np.nan])))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
@settings(deadline=None)
def test_holm_equals_its_definition(p) -> None:
    order = sorted(range(len(p)), key=lambda k: p[k])
    want, highest = [0.0] * len(p), 0.0
    for rank, k in enumerate(order):
        highest = max(highest, min(1.0, (len(p) - rank) * p[k]))
        want[k] = highest
    assert holm(p) == pytest.approx(want)


@given(st.integers(0, 12), st.integers(0, 12))
@settings(deadline=None)
def test_mcnemar_equals_summing_binomials(b, c) -> None:
    from math import comb

    first = np.array([1.0] * b + [0.0] * c + [1.0, 0.0, np.nan])
    second = np.array([0.0] * b + [1.0] * c + [1.0, 0.0, 1.0])
    n = b + c
    tail = sum(comb(n, k) for k in range(min(b, c) + 1)) / 2**n if n else 1.0
    assert mcnemar(first, second).p == pytest.approx(min(1.0, 2 * tail))


def test_one_seed_has_no_spread() -> None:
    assert seed_spread([0.5]) == (0.5, None)
    assert seed_spread([0.4, 0.6]) == (0.5, pytest.approx(0.1414213562))
