"""Clusters equal the plain loop, with no more questions than it asks."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from routeyard.pipelines.curate.entailment import Pair
from routeyard.pipelines.curate.preference import AnswerGroup, answer_key, cluster, plain


@dataclass
class Table:
    """Entailment read from a set of (premise, hypothesis), or None for an outage."""

    true: set[tuple[str, str]]
    symmetric: bool = False
    outages: set[tuple[str, str]] = field(default_factory=set)
    name: str = "table"
    reads: str = "text"
    asked: list[Pair] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)

    def decide(self, premise: str, hypothesis: str) -> bool:
        return (premise, hypothesis) in self.true

    def canonical(self, scorer: str, answer: str) -> Hashable | None:
        return None

    def key(self, pair: Pair) -> Hashable:
        return pair.premise, pair.hypothesis

    def entails(self, pairs: Sequence[Pair]) -> list[bool | None]:
        self.asked += pairs
        self.batches.append(len(pairs))
        return [
            None
            if (pair.premise, pair.hypothesis) in self.outages
            else self.decide(pair.premise, pair.hypothesis)
            for pair in pairs
        ]


def naive(answers: Sequence[str], table: Table) -> tuple[list[int], int]:
    """Algorithm 1 as it stands in the paper: one sample, one representative, one question."""
    representatives: list[str] = []
    clusters: list[int] = []
    questions = 0
    for answer in answers:
        for number, representative in enumerate(representatives):
            questions += 1
            same = representative == answer or table.decide(representative, answer)
            if same and not table.symmetric:
                questions += 1
                same = representative == answer or table.decide(answer, representative)
            if same:
                clusters.append(number)
                break
        else:
            clusters.append(len(representatives))
            representatives.append(answer)
    return clusters, questions


def group(answers: Sequence[str]) -> AnswerGroup:
    return AnswerGroup("q", tuple(answers), tuple(answer_key(a, None) for a in answers))


letters = st.sampled_from("abcdefg")


@settings(deadline=None, max_examples=300)
@given(
    groups=st.lists(st.lists(letters, max_size=10), max_size=6),
    true=st.sets(st.tuples(letters, letters), max_size=40),
    batch=st.integers(1, 5),
)
def test_equals_the_plain_loop_for_any_relation(groups, true, batch):
    # Entailment models are neither transitive nor consistent; the order of comparing decides.
    table = Table(true)
    result = cluster([group(g) for g in groups], table, batch=batch)
    plain_loop = [naive(g, Table(true)) for g in groups]
    assert [a.tolist() for a in result.assignments] == [clusters for clusters, _ in plain_loop]
    assert result.calls_naive == sum(questions for _, questions in plain_loop)
    assert result.calls == len(table.asked) == len(set(table.asked))
    assert result.calls <= result.calls_naive
    assert max(table.batches, default=0) <= batch


@settings(deadline=None, max_examples=100)
@given(
    groups=st.lists(st.lists(letters, max_size=8), max_size=4),
    edges=st.sets(st.tuples(letters, letters), max_size=20),
)
def test_symmetric_backend_is_asked_in_one_direction(groups, edges):
    true = edges | {(b, a) for a, b in edges}
    result = cluster([group(g) for g in groups], Table(true, symmetric=True))
    assert [a.tolist() for a in result.assignments] == [
        naive(g, Table(true, symmetric=True))[0] for g in groups
    ]
    assert result.calls_naive == sum(naive(g, Table(true, symmetric=True))[1] for g in groups)


def test_both_directions_are_needed():
    # "Paris, France" entails "Paris" but not the other way round: two meanings.
    answers = ["Paris, France", "Paris"]
    assert cluster([group(answers)], Table({tuple(answers)})).assignments[0].tolist() == [0, 1]
    both = {("Paris, France", "Paris"), ("Paris", "Paris, France")}
    assert cluster([group(answers)], Table(both)).assignments[0].tolist() == [0, 0]


def test_compares_with_the_representative_not_with_every_member():
    # b joins a; c equals b only. The greedy rule looks at a alone, so c stands apart.
    true = {("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")}
    assert cluster([group("abc")], Table(true)).assignments[0].tolist() == [0, 0, 1]


def test_equal_answers_cost_no_question():
    table = Table(set())
    result = cluster([group(["42 ", "42", "42."])] * 3, table)
    assert result.calls == 0
    assert result.calls_naive == 3 * 4
    assert [a.tolist() for a in result.assignments] == [[0, 0, 0]] * 3


def test_a_pair_is_asked_once_for_all_queries_in_one_batch():
    table = Table(set())
    result = cluster([group("ab")] * 50 + [group("cd")], table)
    assert result.calls == 2
    assert table.batches == [2]
    assert result.rounds == 1


def test_an_outage_leaves_its_group_undecided_and_no_other():
    # An error is not a "no": a cluster built on it would be an invented meaning.
    table = Table(set(), outages={("a", "b")})
    result = cluster([group("ab"), group("cd"), group("aa")], table)
    assert result.assignments[0] is None
    assert [a.tolist() for a in result.assignments[1:]] == [[0, 1], [0, 0]]


def test_an_unreadable_answer_is_alone_and_never_asked_about():
    table = Table({("a", "b"), ("b", "a")})
    answers = (None, "a", "b", None)
    keys = (("text", "mumble"), ("answer", "a"), ("answer", "b"), ("text", "other mumble"))
    result = cluster([AnswerGroup("q", answers, keys)], table)
    assert result.assignments[0].tolist() == [0, 1, 1, 2]
    assert {pair.premise for pair in table.asked} == {"a", "b"}


class Numbers(Table):
    """Equal values are one answer; `#` marks answers without a canonical form."""

    def decide(self, premise, hypothesis):
        return float(premise.strip("#")) == float(hypothesis.strip("#"))

    def canonical(self, scorer, answer):
        return None if "#" in answer else float(answer)


numerals = st.sampled_from(["1", "1.0", "2", "#1", "#2", "2.0#", "3", "03"])


@settings(deadline=None, max_examples=200)
@given(groups=st.lists(st.lists(numerals, max_size=8), max_size=4))
def test_canonical_forms_decide_what_the_backend_would_have(groups):
    table = Numbers(set())
    result = cluster([group(g) for g in groups], table)
    loops = [naive(g, Numbers(set())) for g in groups]
    assert [a.tolist() for a in result.assignments] == [clusters for clusters, _ in loops]
    assert result.calls <= result.calls_naive <= sum(questions for _, questions in loops)
    for pair in table.asked:
        assert "#" in pair.premise + pair.hypothesis


def test_without_a_backend_equality_decides():
    result = cluster([group("abab"), AnswerGroup("q", (), ())], None)
    assert [a.tolist() for a in result.assignments] == [[0, 1, 0, 1], []]
    assert result.assignments[1].dtype == np.int32
    assert (result.calls, result.calls_naive) == (0, 0)


def test_plain_keeps_what_carries_meaning():
    assert plain(" the  answer\n is 4. ") == "the answer is 4"
    assert plain("caf\u0065\u0301") == "caf\u00e9"
    # Compatibility folding or case folding would merge these.
    assert plain("x²") != plain("x2")
    assert plain("√2+√3") != plain("√2·√3")
    assert plain("Mb") != plain("MB")
