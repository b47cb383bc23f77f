"""Estimators against plain sums of probabilities, and against cases worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeyard.pipelines.curate.preference import (
    DISCRETE,
    ESTIMATORS,
    RAO_BLACKWELL,
    RENORMALISED,
    SEQUENCE,
    auroc,
    discrete,
    entropies,
)


def ints(*values):
    return np.array(values, dtype=np.int32)


def reference(clusters, texts, logprobs):
    """The formulas as they stand, in plain probabilities."""
    p_of = {}
    for number, text, value in zip(clusters, texts, logprobs, strict=True):
        p_of.setdefault((number, text), math.exp(value))
    k = max(clusters) + 1
    p = [sum(v for (number, _), v in p_of.items() if number == c) for c in range(k)]
    share = [x / sum(p) for x in p]
    n = len(clusters)
    frequency = [list(clusters).count(c) / n for c in range(k)]
    return {
        SEQUENCE: -sum(map(math.log, p)) / k,
        RENORMALISED: -sum(map(math.log, share)) / k,
        RAO_BLACKWELL: -sum(x * math.log(x) for x in share),
        DISCRETE: -sum(x * math.log(x) for x in frequency),
    }


@st.composite
def sampled(draw):
    n = draw(st.integers(1, 10))
    raw = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    order = {value: i for i, value in enumerate(dict.fromkeys(raw))}
    texts = draw(st.lists(st.sampled_from("uvwxyz"), min_size=n, max_size=n))
    logprobs = draw(st.lists(st.floats(-20, -1e-3), min_size=n, max_size=n))
    return [order[value] for value in raw], texts, logprobs


@settings(deadline=None, max_examples=300)
@given(sampled())
def test_equals_the_formulas(drawn):
    clusters, texts, logprobs = drawn
    found = entropies(ints(*clusters), texts, logprobs)
    expected = reference(clusters, texts, logprobs)
    assert set(found) == set(ESTIMATORS)
    for estimator in ESTIMATORS:
        assert found[estimator] == pytest.approx(expected[estimator], rel=1e-9, abs=1e-9)


def test_by_hand_discrete():
    # Four samples, two meanings, half each: one bit, ln 2 nat.
    assert discrete(ints(0, 0, 1, 1)) == pytest.approx(math.log(2))
    assert discrete(ints(0, 0, 0, 1)) == pytest.approx(0.5623351446)


def test_by_hand_sequence_forms():
    # p(C0) = 0.25 + 0.25 (two wordings), p(C1) = 0.125.
    found = entropies(ints(0, 0, 1), ["u", "v", "w"], np.log([0.25, 0.25, 0.125]))
    assert found[SEQUENCE] == pytest.approx((math.log(2) + math.log(8)) / 2)
    assert found[RENORMALISED] == pytest.approx(-(math.log(0.8) + math.log(0.2)) / 2)
    assert found[RAO_BLACKWELL] == pytest.approx(-(0.8 * math.log(0.8) + 0.2 * math.log(0.2)))


def test_a_sequence_sampled_twice_counts_once():
    # Its probability is a property of the text, not of how often it was drawn.
    once = entropies(ints(0, 1), ["u", "w"], [-1.0, -2.0])
    twice = entropies(ints(0, 0, 0, 1), ["u", "u", "u", "w"], [-1.0, -1.0, -1.0, -2.0])
    assert once[SEQUENCE] == twice[SEQUENCE] == 1.5
    assert twice[DISCRETE] < once[DISCRETE]


def test_empty_and_single():
    assert entropies(ints(), [], []) == {DISCRETE: None}
    single = entropies(ints(0), ["u"], [-3.0])
    assert single == {SEQUENCE: 3.0, RENORMALISED: 0.0, RAO_BLACKWELL: 0.0, DISCRETE: 0.0}
    # A certain answer is 0, not -0: the sign would show in files and comparisons.
    assert math.copysign(1, entropies(ints(0), ["u"], [0.0])[SEQUENCE]) == 1


def test_one_missing_logprob_leaves_only_the_discrete_form():
    # Summing over the others would make the cluster look less likely than it is.
    assert set(entropies(ints(0, 1), ["u", "v"], [-1.0, None])) == {DISCRETE}


def test_long_answers_do_not_underflow():
    # exp(-5000) is 0.0: a plain sum of probabilities would give log 0.
    found = entropies(ints(0, 0, 1), ["u", "v", "w"], [-5000.0, -5001.0, -5200.0])
    assert found[SEQUENCE] == pytest.approx((5000 - math.log1p(math.exp(-1)) + 5200) / 2)
    assert found[RAO_BLACKWELL] == pytest.approx(0.0, abs=1e-60)


def test_auroc_against_counting_pairs():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 5, 60)
    wrong = rng.random(60) < 0.3
    pairs = [(a > b) + 0.5 * (a == b) for a in scores[wrong] for b in scores[~wrong]]
    assert auroc(scores, wrong) == pytest.approx(np.mean(pairs))
    assert auroc([1.0, 2.0], [True, True]) is None
    assert auroc([], []) is None
