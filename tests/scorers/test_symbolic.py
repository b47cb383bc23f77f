"""The killable worker: limits, crashes, forks and threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from routeyard.pipelines.label.scorers import symbolic
from routeyard.pipelines.label.scorers.math import read
from routeyard.pipelines.label.scorers.scorer import ScoringInput


@pytest.fixture(autouse=True, scope="module")
def _worker() -> Iterator[None]:
    yield
    symbolic.close()


# sympy evaluates the range of one and the greatest common divisor of the other for minutes.
ENDLESS = r"\gcd(10^{10^{8}},7)", r"\gcd(10^{10^{8}},7)+1"


def test_a_comparison_that_does_not_end_is_killed_and_the_next_one_works() -> None:
    symbolic.same("1+x", "x+1")  # start the worker
    began = time.monotonic()
    with pytest.raises(symbolic.TookTooLong), symbolic.allowance(0.05):
        symbolic.same(*ENDLESS)
    assert symbolic.same("2x+x", "3x") is True
    assert time.monotonic() - began < 60


def test_an_allowance_is_for_all_that_is_compared_within_it_now_or_before() -> None:
    pairs = [(rf"\sin({n}x)", f"{n}x") for n in range(3)]
    for pair in pairs:
        assert symbolic.same(*pair) is not None
    with pytest.raises(symbolic.TookTooLong), symbolic.allowance(1e-9):
        symbolic.same(*pairs[0])
    with pytest.raises(symbolic.TookTooLong), symbolic.allowance(1e-9):
        symbolic.same("x+5", "5+x")
    assert symbolic.same("x+5", "5+x") is True  # too little for one is not remembered for all


def test_what_exceeds_a_limit_is_wrong_unless_the_reference_does() -> None:
    reading = read(ScoringInput("", (r"\sin x+1",)), r"\boxed{9^{9^{9^{9}}}}")
    assert (reading.outcome, reading.score) == ("incorrect", 0.0)
    assert "exceeds a limit" in reading.reason
    reading = read(ScoringInput("", (r"9^{9^{9^{9}}}",)), r"\boxed{\sin x+1}")
    assert (reading.outcome, reading.score) == ("error", None)


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
    with pytest.raises(symbolic.TookTooLong):
        symbolic.same("9" * 700, "9" * 700 + "+0")


def test_marks_too_slow_to_compare_do_not_hide_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    from routeyard.pipelines.label.scorers import math, symbolic
    from routeyard.pipelines.label.scorers.scorer import ScoringInput

    same = math.same_answer

    def slow(one: str, other: str, asked: ScoringInput) -> bool:
        if one == "2^x" or other == "2^x":
            raise symbolic.TookTooLong
        return same(one, other, asked)

    monkeypatch.setattr(math, "same_answer", slow)
    reading = math.read(ScoringInput("", ("5",)), r"\boxed{2^x} and then \boxed{5}")
    assert (reading.outcome, reading.extracted) == ("correct", "5")
    only = math.read(ScoringInput("", ("2^x",)), r"\boxed{5}")
    assert (only.outcome, "exceeds a limit" in only.reason) == ("incorrect", True)


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
