"""Plain expressions are compared by value; what may be read in two ways is left alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from routeyard.pipelines.label.scorers import SCORERS, exact, symbolic
from routeyard.pipelines.label.scorers.scorer import ScoringInput

EQUAL = [
    (r"\sqrt{8}", r"2\sqrt{2}"),
    (r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt{2}}"),
    (r"3-2\sqrt{2}", r"(\sqrt{2}-1)^2"),
    (r"\sqrt[3]{16}", r"2\sqrt[3]{2}"),
    (r"(x+1)^{2}", r"x^2+2x+1"),
    (r"\frac{x^2-1}{x-1}", r"x+1"),
    (r"\pi r^2", r"r^2\pi"),
    (r"\frac{n(n+1)}{2}", r"\frac{n^2+n}{2}"),
    (r"3^{n}\cdot 3", r"3^{n+1}"),
    (r"x_1+x_{2}", r"x_2+x_1"),
    (r"5!", r"120"),
    (r"\binom{5}{2}", r"10"),
    (r"2\cdot -3", r"-6"),
    (r"-x^2", r"-(x^2)"),
    (r"4^{1/2}", r"2"),
]
DIFFERENT = [
    (r"\sqrt{x^2}", r"x"),  # agree where x is positive
    (r"-x^2", r"(-x)^2"),
    (r"\sqrt{2}+\sqrt{3}", r"\sqrt{5}"),
    (r"\frac{1}{3}", r"0.3333333333"),
    (r"30", r"30p"),
    (r"x^y", r"y^x"),
    (r"(1+\frac{1}{10})", r"(1+\frac{1}{9})"),
    (r"\sqrt{2}", r"1.41421356237309504880168872420969807857"),
    (r"a", r"A"),
]
#: Two readings, or a convention that this module does not know.
UNCLEAR = [
    (r"1/2x", r"\frac{x}{2}"),
    (r"2^34", r"2^{34}"),
    (r"f(x)", r"fx"),
    (r"x2", r"2x"),
    (r"\sqrt[3]{-8}", r"-2"),
    (r"i^2", r"-1"),
    (r"e", r"3"),
    (r"\sin x", r"\cos x"),
    (r"\frac{1}{0}", r"\frac{2}{0}"),
    (r"9^{9^{9}}", r"9^{9^{8}}"),
    (r"100000!", r"100001!"),
    (r"word of answer", r"answer of word"),
    (r"((((" * 100, r"1"),
    (r"", r""),
]


@pytest.fixture(scope="module", autouse=True)
def _worker() -> Iterator[None]:
    yield
    symbolic.close()


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal(one: str, other: str) -> None:
    assert exact.same(one, other) is True
    assert exact.same(other, one) is True


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different(one: str, other: str) -> None:
    assert exact.same(one, other) is False


@pytest.mark.parametrize(("one", "other"), UNCLEAR)
def test_unclear(one: str, other: str) -> None:
    assert exact.same(one, other) is None


def test_computer_algebra_says_the_same() -> None:
    said = [symbolic.same(one, other) for one, other in EQUAL + DIFFERENT]
    assert said == [True] * len(EQUAL) + [False] * len(DIFFERENT)


def test_plain_answers_do_not_start_the_worker() -> None:
    # Its start alone costs what 8,000 readings do.
    symbolic.close()
    read = SCORERS.get("math").read
    for reference, answer in [(r"\frac{\sqrt{3}}{3}", r"\frac{1}{\sqrt3}"), ("30p", "30q")]:
        read(ScoringInput("", (reference,)), f"\\boxed{{{answer}}}")
    assert symbolic._WORKER._process is None
