"""The killable worker: limits, crashes, forks and threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from routeyard.pipelines.scorers.comparison import symbolic
from routeyard.pipelines.scorers.math import read
from routeyard.pipelines.scorers.scorer import ScoringInput


@pytest.fixture(autouse=True)
def _worker() -> Iterator[None]:
    symbolic.forget()
    yield
    symbolic._slow_pairs.clear()
    symbolic._slow_sides.clear()


# sympy expands this for minutes.
ENDLESS = "(a+b+c+d+x+y+z+1)^{45}", "(1+z+y+x+d+c+b+a)^{45}+0\\cdot x^{2}+1"


def test_a_comparison_that_does_not_end_is_killed_and_the_next_one_works() -> None:
    began = time.monotonic()
    symbolic.same("1+x", "x+1")  # start the worker outside the limit
    try:
        answer = symbolic.same(*ENDLESS, limit=0.001)
    except symbolic.TookTooLong:
        answer = None
    assert answer is None
    assert symbolic.same("2x+x", "3x") is True
    assert time.monotonic() - began < 60


def test_too_long_is_an_error_not_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: object) -> bool:
        raise symbolic.TookTooLong

    monkeypatch.setattr(symbolic, "same", endless)
    reading = read(ScoringInput("", (r"\sin x+1",)), r"\boxed{1+\sin x+y}")
    assert reading.outcome == "error"
    assert reading.score is None


def test_time_outs_are_remembered_for_the_pair_and_for_the_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, str]] = []

    def slow(one: str, other: str, limit: float) -> bool:
        asked.append((one, other))
        if "bad" in (one, other):
            raise symbolic.TookTooLong
        return one == other

    monkeypatch.setattr(symbolic, "_same", slow)
    for answer in ("x", "x", "y", "z", "w", "x"):
        with pytest.raises(symbolic.TookTooLong):
            symbolic.same("bad", answer)
    # the pair once, then one more partner; after that the reference is known to be bad
    assert asked == [("bad", "x"), ("bad", "y")]
    # an answer that met the bad reference once is still compared with a good one
    assert symbolic.same("x", "x") is True


def test_a_worker_that_dies_settles_nothing_and_is_replaced() -> None:
    assert symbolic.same("x+1", "1+x") is True
    assert symbolic._WORKER._process is not None
    symbolic._WORKER._process.kill()
    symbolic._WORKER._process.wait()
    assert symbolic.same("x+2", "2+x") is True


def test_works_off_the_main_thread() -> None:
    # math-verify's own time-out needs the main thread.
    answers: list[bool | None] = []
    threads = [
        threading.Thread(target=lambda n=n: answers.append(symbolic.same(f"x+{n}", f"{n}+x")))
        for n in range(3, 7)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * 4


def test_what_cannot_be_read_is_not_equal() -> None:
    assert symbolic.same("x+", "x") is None
    assert symbolic.same("9" * 700, "9" * 700 + "+0") is None
    symbolic.close()


def test_marks_too_slow_to_compare_do_not_hide_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    from routeyard.pipelines.scorers import math
    from routeyard.pipelines.scorers.comparison import symbolic
    from routeyard.pipelines.scorers.scorer import ScoringInput

    same = math.same_answer

    def slow(one: str, other: str, asked: ScoringInput) -> bool:
        if one == "2^x" or other == "2^x":
            raise symbolic.TookTooLong
        return same(one, other, asked)

    monkeypatch.setattr(math, "same_answer", slow)
    reading = math.read(ScoringInput("", ("5",)), r"\boxed{2^x} and then \boxed{5}")
    assert (reading.outcome, reading.extracted) == ("correct", "5")
    only = math.read(ScoringInput("", ("2^x",)), r"\boxed{5}")
    assert (only.outcome, "took more than" in only.reason) == ("error", True)


def test_sentences_are_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(symbolic, "same", lambda *pair: asked.append(pair))
    for said in ("160x", "S = 4W - 13(since Stan has caught 13 less than 4 times as many)"):
        wordy = "This cannot be solved without knowing x(0)"
        assert read(ScoringInput("", (said,)), f"\\boxed{{{wordy}}}").outcome == "incorrect"
    assert not asked
    # a function and a unit in \text are none; a long word that one side alone has tells them apart
    for said in (r"\sin x \cos x", r"\sin x \text{ square feet}", "2x shells"):
        read(ScoringInput("", ("x+1",)), f"\\boxed{{{said}}}")
    assert len(asked) == 2


def test_an_escaped_inch_mark_ends_no_number() -> None:
    reading = read(ScoringInput("How tall was she?", ("67",)), '{"answer": "67\\""}')
    assert reading.outcome == "correct"
    assert read(ScoringInput("How tall?", ("66",)), '{"answer": "67\\""}').outcome == "incorrect"
