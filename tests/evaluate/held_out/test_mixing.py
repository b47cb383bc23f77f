"""Releases trained on together and tested apart: nothing twice, nothing tested that was learnt."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.evaluate.held_out import train_on_group
from routeyard.pipelines.evaluate.run.mixing import across, alike, few, mixed, trained_elsewhere
from routeyard.pipelines.routers import Examples, Queries
from tests.evaluate.cores import core_of


def core(ids: list[str], models: tuple[str, ...] = ("a", "b"), *, states: bool = True) -> Core:
    n = len(ids)
    rng = np.random.default_rng(len(ids))
    return core_of(
        (rng.random((n, len(models))) < 0.5).astype(float),
        ["math" if i % 3 else "law" for i in range(n)],
        query_ids=tuple(ids),
        model_ids=models,
        costs={"usd": np.ones((n, len(models)))},
        splits={"dense": np.array((["train", "train", "validation", "test"] * n)[:n])},
        embeddings=rng.normal(size=(n, 3)).astype(np.float32),
        hidden=rng.normal(size=(n, 2, 3)).astype(np.float32) if states else None,
        hidden_of="a" if states else "",
    )


FIRST = core([f"q{i}" for i in range(8)])
SECOND = core(["q1", *(f"r{i}" for i in range(7))])


class Counting:
    """Says how often it is fitted, and on what."""

    name = "counting"
    fits: list[tuple[str, ...]]

    def __init__(self) -> None:
        self.fits = []

    def fit(self, train: Examples) -> Counting:
        self.fits.append(train.queries.query_ids)
        return self

    def scores(self, queries: Queries) -> Floats:
        return np.tile([0.0, 1.0], (len(queries), 1))


def test_a_mixture_holds_every_question_once_with_all_that_is_known_of_both() -> None:
    whole = mixed([FIRST.training("dense"), SECOND.training("dense")])
    # r0 is SECOND's second train question; its first, q1, stands in FIRST already.
    assert whole.queries.query_ids == ("q0", "q1", "q4", "q5", "r0", "r3", "r4")
    at = whole.queries.query_ids.index("r0")
    assert np.array_equal(whole.labels[at], SECOND.labels[1])
    assert np.array_equal(whole.queries.vectors()[at], SECOND.embeddings[1])
    assert np.array_equal(whole.queries.states()[at], SECOND.hidden[1])
    held = whole.validation
    assert held is not None
    assert held.queries.query_ids == ("q2", "q6", "r1", "r5")
    bare = core(["s0", "s1"], states=False).examples()
    assert mixed([FIRST.training("dense"), bare]).queries.hidden is None
    with pytest.raises(BadInput, match="different pools"):
        mixed([FIRST.examples(), core(["x"], ("a", "c")).examples()])


def test_pools_are_cut_to_the_models_they_share() -> None:
    found = alike(
        {"one": core(["q0", "q1"], ("b", "a", "z")), "two": core(["r0"], ("a", "y", "b"))}
    )
    assert {c.model_ids for c in found.values()} == {("b", "a")}  # as the first has them
    with pytest.raises(BadInput, match="no model is in all of one, two"):
        alike({"one": core(["q0"], ("a", "b")), "two": core(["r0"], ("c", "d"))})


def test_one_fit_is_tested_everywhere_and_never_on_what_it_learnt() -> None:
    # q3 is a test question of the first release and a train question here.
    train = dataclasses.replace(SECOND.training("dense"), validation=None)
    leaking = mixed([train, FIRST.take(np.array([3])).examples()])
    router = Counting()
    done = across(
        leaking,
        {"first": (FIRST, "dense"), "second": (SECOND, "dense")},
        {"counting": lambda: router},
        resamples=100,
    )
    assert router.fits == [("q1", "r0", "r3", "r4", "q3")]
    asked = {
        name: {r["query_id"] for r in one.choices.to_pylist() if r["router"] == "counting"}
        for name, one in done.items()
    }
    assert asked == {"first": {"q7"}, "second": {"r2", "r6"}}


def test_a_smaller_draw_lies_in_a_larger_one() -> None:
    train = FIRST.examples()
    small, large = (few(train, n, seed=3).queries.query_ids for n in (3, 6))
    assert len(small) == 3
    assert set(small) < set(large)
    assert small == tuple(sorted(small))


def test_one_group_trains_and_all_others_are_tested() -> None:
    found = train_on_group(core([f"q{i:02}" for i in range(24)]), "dense", ("math",))
    split = found.splits["dense"]
    assert set(found.tasks[split == "train"]) == {"math"}
    assert set(found.tasks[split == "test"]) == {"law"}
    with pytest.raises(BadInput, match="none to train on"):
        train_on_group(FIRST, "dense", ("nowhere",))


def test_one_core_learns_in_one_release_and_is_tested_on_another() -> None:
    asked = dataclasses.replace(SECOND, splits={"all": np.full(8, "test")})
    found = trained_elsewhere(FIRST, asked, "dense", "all")
    split, ids = found.splits["dense"], np.array(found.query_ids)
    learnt = FIRST.splits["dense"]
    for part in ("train", "validation"):
        assert ids[split == part].tolist() == np.array(FIRST.query_ids)[learnt == part].tolist()
    # q1, which FIRST learns from, is not tested; FIRST's own test questions are not there.
    assert ids[split == "test"].tolist() == [f"r{i}" for i in range(7)]
    at = int(np.flatnonzero(ids == "r3")[0])
    assert found.labels[at].tolist() == SECOND.labels[4].tolist()
    assert found.embeddings is not None
    assert SECOND.embeddings is not None
    assert found.embeddings[at].tolist() == SECOND.embeddings[4].tolist()
    assert len(set(found.groups.tolist())) == found.n_queries
