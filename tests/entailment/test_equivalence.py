"""Answer equivalence through our own scorers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeyard.pipelines.curate.entailment import Pair, scorer_equivalence
from routeyard.pipelines.curate.preference import AnswerGroup, answer_key, cluster

BACKEND = scorer_equivalence()
canonical = BACKEND.canonical


def same(a, b, scorer, choices=()):
    forward, backward = BACKEND.entails(
        [Pair("q", a, b, scorer, choices), Pair("q", b, a, scorer, choices)]
    )
    return bool(forward and backward)


@pytest.mark.parametrize(
    ("scorer", "a", "b", "equal"),
    [
        ("numeric", "1,000", "$1000", True),
        ("numeric", "1/2", "0.50", True),
        ("numeric", "50%", "0.5", True),
        ("numeric", "12 apples", "13 apples", False),
        ("em", "the Eiffel Tower", "Eiffel tower", True),
        ("em", "Paris", "Lyon", False),
    ],
)
def test_formats_are_the_scorers_business(scorer, a, b, equal):
    assert same(a, b, scorer) is equal


def test_letters():
    choices = ("4", "5", "6")
    assert same("A", "A", "mcq", choices)
    assert not same("A", "B", "mcq", choices)


numbers = st.tuples(
    st.integers(-3000, 3000),
    st.sampled_from(["{}", "{:,}", "{}.0", "{}.50", "${:,}.25", "${}", "{}.500"]),
).map(lambda drawn: drawn[1].format(drawn[0]))


@settings(deadline=None, max_examples=150)
@given(a=numbers, b=numbers)
def test_canonical_forms_agree_with_the_scorers(a, b):
    # They settle pairs in the scorer's place, so they may never say otherwise.
    for scorer in ("numeric", "math"):
        forms = canonical(scorer, a), canonical(scorer, b)
        if None not in forms:
            assert (forms[0] == forms[1]) is same(a, b, scorer)


forms = st.sampled_from(
    ["{}", "{:,}", "${}", "{}.0", "{} apples", "{}/3", "{}.333", "{}e2", "x = {}", "-{}", "{} 1/2"]
)
written = st.tuples(st.sampled_from([1, 2, 3, 10, 100, 1000]), forms).map(
    lambda drawn: drawn[1].format(drawn[0])
)


@settings(deadline=None, max_examples=300)
@given(a=written, b=written)
def test_numeric_says_the_same_in_both_directions(a, b):
    # The two directions share one question; that is only right while this holds.
    first, second = Pair("q", a, b, "numeric"), Pair("q", b, a, "numeric")
    assert BACKEND.key(first) == BACKEND.key(second)
    assert BACKEND.equivalent(first) == BACKEND.equivalent(second)


def test_directions_stay_apart_where_a_scorer_may_tell_them_apart():
    for scorer, a, b in (("math", "x", "1"), ("numeric", "50%", "1/2"), ("em", "a", "b")):
        assert BACKEND.key(Pair("q", a, b, scorer)) != BACKEND.key(Pair("q", b, a, scorer))


def test_what_is_not_plain_has_no_canonical_form():
    for answer in ("1/2", "50%", "0,111", "12 apples", "1.234567", "²", "٣", "", "1,00", "9" * 40):
        assert canonical("numeric", answer) is None
    assert canonical("em", "15") is None  # to `em`, 1.5 and 15 are one: punctuation is dropped
    assert canonical("mcq", "A") != canonical("mcq", "B")


def test_graded_scorers_decide_nothing():
    assert BACKEND.entails([Pair("q", "a", "b", "given")]) == [None]


def test_clusters_through_the_scorer():
    answers = ("1000", "1,000", "$1000", "999", "999.0", "1e3")
    group = AnswerGroup("q", answers, tuple(answer_key(a, a) for a in answers), "numeric")
    result = cluster([group], BACKEND)
    assert result.assignments[0].tolist() == [0, 0, 0, 1, 1, 0]
    assert result.calls < result.calls_naive
