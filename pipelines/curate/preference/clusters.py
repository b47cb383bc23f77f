"""Meaning clusters: greedy clustering of sampled answers by bidirectional entailment.

Each new answer is compared with the representative (first member) of each
cluster, in the order in which the clusters were formed, and joins the first
that it entails and that entails it (Kuhn et al. 2023, "Semantic Uncertainty",
its clustering algorithm).
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Generator, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from routeyard.pipelines.equivalence_types import Entailment, Pair


@dataclass(frozen=True, slots=True)
class AnswerGroup:
    """The answers of one model to one query, in sample order.

    Attributes:
        answers: What the backend compares; None where nothing could be
            extracted: such an answer equals none but its own repetition.
        keys: Answers with equal keys are settled without asking (`answer_key`).
    """

    question: str
    answers: tuple[str | None, ...]
    keys: tuple[Hashable, ...]
    scorer: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Clustering:
    """Result of `cluster`.

    Attributes:
        assignments: Per group, the cluster number of each answer, int32 of shape
            (n answers,), numbered in order of formation; None where the backend
            could not decide a pair that the clustering needed.
        calls: Entailment questions put to the backend.
        calls_naive: Questions the plain loop asks: no cheap equality, no cache. A
            lower bound where canonical forms told answers apart.
        rounds: Batches put to the backend.
    """

    assignments: list[npt.NDArray[np.int32] | None]
    calls: int
    calls_naive: int
    rounds: int


def plain(text: str) -> str:
    """Text without differences that never carry meaning: whitespace, Unicode form, a full stop.

    Case, operators and superscripts stay: `x²` is not `x2`, `Mb` is not `MB`.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.split()).removesuffix(".")


def answer_key(text: str, extracted: str | None) -> tuple[str, str]:
    """Cheap equality: equal extracted answers, or equal text where none was extracted."""
    return ("text", plain(text)) if extracted is None else ("answer", plain(extracted))


def cluster(
    groups: Sequence[AnswerGroup], entailment: Entailment | None, *, batch: int = 4096
) -> Clustering:
    """Cluster every group; equal to the plain loop, with fewer questions.

    The groups advance together: in each round every unfinished group puts its
    next undecided pair, so that the backend sees batches of up to `batch`
    pairs from many queries. A pair is asked once, whichever group needs it.

    Args:
        entailment: None clusters by cheap equality alone.
    """
    known: dict[Hashable, bool | None] = {}
    results: list[_Greedy | None] = [None] * len(groups)
    waiting: list[tuple[int, _Steps, Pair, Hashable]] = []
    calls = rounds = 0

    def advance(index: int, steps: _Steps, answer: bool | None, first: bool) -> None:
        # Runs the plain loop until it needs an answer nobody has given yet.
        try:
            pair = next(steps) if first else steps.send(answer)
            assert entailment is not None
            key = entailment.key(pair)
            while key in known:
                pair = steps.send(known[key])
                key = entailment.key(pair)
            waiting.append((index, steps, pair, key))
        except StopIteration as stop:
            results[index] = stop.value

    for index, group in enumerate(groups):
        advance(index, _greedy(group, entailment), None, True)
    while waiting:
        asked = waiting[:]
        waiting.clear()
        unknown: dict[Hashable, Pair] = {}
        for _, _, pair, key in asked:
            unknown.setdefault(key, pair)
        pairs = list(unknown.values())
        for start in range(0, len(pairs), batch):
            assert entailment is not None
            decided = entailment.entails(pairs[start : start + batch])
            known.update(zip(list(unknown)[start : start + batch], decided, strict=True))
            rounds += 1
        calls += len(unknown)
        for index, steps, _, key in asked:
            advance(index, steps, known[key], False)
    done = [result for result in results if result is not None]
    return Clustering(
        [result.assignment for result in done], calls, sum(result.naive for result in done), rounds
    )


@dataclass(frozen=True, slots=True)
class _Greedy:
    assignment: npt.NDArray[np.int32] | None
    naive: int


_Steps = Generator[Pair, "bool | None", _Greedy]


def _greedy(group: AnswerGroup, entailment: Entailment | None) -> _Steps:
    """The plain loop over distinct answers; yields each question, is sent its answer."""
    repeats = Counter(group.keys)
    both_ways = 1 if entailment is not None and entailment.symmetric else 2
    if len(repeats) == 1 and entailment is not None:
        # All agree, as most do: the plain loop would have asked for each repetition.
        asked = 0 if group.answers[0] is None else both_ways
        return _Greedy(np.zeros(len(group.keys), dtype=np.int32), (len(group.keys) - 1) * asked)

    answer_of: dict[Hashable, str | None] = {}
    for key, answer in zip(group.keys, group.answers, strict=True):
        answer_of.setdefault(key, answer)
    representatives: list[_Form] = []
    cluster_of: dict[Hashable, int] = {}
    naive = 0
    for key, answer in answer_of.items():
        form: Hashable | None = None
        compared = False
        if entailment is not None and answer is not None:
            form, compared = entailment.canonical(group.scorer, answer), True
        questions = 0
        for number, other in enumerate(representatives):
            if not compared or other.answer is None:
                continue
            same, asked = yield from _same(group, entailment, other, _Form(answer, form))
            questions += asked
            if same is None:
                return _Greedy(None, naive + questions)
            if same:
                cluster_of[key] = number
                break
        naive += questions * repeats[key]
        if key not in cluster_of:
            cluster_of[key] = len(representatives)
            representatives.append(_Form(answer, form))
            if compared:
                # Each repetition of a representative meets itself in the plain loop.
                naive += (repeats[key] - 1) * both_ways
    return _Greedy(np.array([cluster_of[key] for key in group.keys], dtype=np.int32), naive)


class _Form(NamedTuple):
    """An answer and its canonical form, None where it has none."""

    answer: Any
    form: Hashable | None


def _same(
    group: AnswerGroup, entailment: Any, one: _Form, other: _Form
) -> Generator[Pair, bool | None, tuple[bool | None, int]]:
    """Whether two answers mean the same, and how many questions the plain loop asks for it."""
    if one.form is not None and other.form is not None:
        # The plain loop asks at least once, twice where the answers are equal.
        equal = one.form == other.form
        return equal, 2 if equal and not entailment.symmetric else 1
    forward = yield _pair(group, one.answer, other.answer)
    if not forward or entailment.symmetric:
        return forward, 1
    return (yield _pair(group, other.answer, one.answer)), 2


def _pair(group: AnswerGroup, premise: str, hypothesis: str) -> Pair:
    return Pair(group.question, premise, hypothesis, group.scorer, group.choices)
