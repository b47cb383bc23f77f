"""The hand-written cases of `numeric` and `math`, and what formatting must never change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeyard.pipelines.label.scorers import math as math_scorer
from routeyard.pipelines.label.scorers import numeric, symbolic
from routeyard.pipelines.label.scorers.scorer import ScoringInput
from tests.scorers import cases_math, cases_numeric


@pytest.fixture(scope="module", autouse=True)
def _worker() -> Iterator[None]:
    yield
    symbolic.close()


def test_there_are_at_least_300_cases_each_with_its_trap() -> None:
    traps = [case[3] for case in [*cases_numeric.cases(), *cases_math.cases()]]
    assert len(traps) >= 300
    assert all(traps)


@pytest.mark.parametrize(("reference", "output", "outcome", "trap"), cases_numeric.cases())
def test_numeric(reference: str, output: str, outcome: str, trap: str) -> None:
    assert numeric.read(ScoringInput("", (reference,)), output).outcome == outcome, trap


@pytest.mark.parametrize(("reference", "answer", "same", "trap"), cases_math.cases())
def test_math_in_both_directions(reference: str, answer: str, same: bool, trap: str) -> None:
    for one, other in ((reference, answer), (answer, reference)):
        reading = math_scorer.read(ScoringInput("", (one,)), f"Hence \\boxed{{{other}}}.")
        assert reading.outcome == ("correct" if same else "incorrect"), trap


def _grouped(value: int, separator: str) -> str:
    return f"{value:,}".replace(",", separator)


#: Ways to write an integer that must never change a verdict.
WAYS: dict[str, Callable[[int], str]] = {
    "plain": str,
    "full stop": lambda n: f"{n}.",
    "one decimal": lambda n: f"{n}.0",
    "two decimals": lambda n: f"{n}.00",
    "commas": lambda n: _grouped(n, ","),
    "LaTeX commas": lambda n: _grouped(n, "{,}"),
    "thin spaces": lambda n: _grouped(n, "\\,"),
    "dollar": lambda n: f"-${-n}" if n < 0 else f"${n}",
    "escaped dollar": lambda n: f"-\\${-n}" if n < 0 else f"\\${n}",
    "formula": lambda n: f"${n}$",
    "round formula": lambda n: f"\\({n}\\)",
    "boxed": lambda n: f"\\boxed{{{n}}}",
    "text": lambda n: f"\\text{{{n}}}",
    "bold": lambda n: f"**{n}**",
    "unit": lambda n: f"{n} apples",
    "LaTeX unit": lambda n: f"{n}\\text{{ cm}}",
    "named": lambda n: f"x = {n}",
    "halves": lambda n: f"\\frac{{{2 * n}}}{{2}}",
    "slash": lambda n: f"{3 * n}/3",
    "typographic minus": lambda n: str(n).replace("-", "−"),
    "full-width": lambda n: str(n).translate(str.maketrans("0123456789", "０１２３４５６７８９")),
    "e-notation": lambda n: f"{n}e0",
    "times ten": lambda n: f"{n}\\times 10^{{0}}",
    "spaces": lambda n: f"   {n}   ",
}


def test_there_are_at_least_twenty_ways() -> None:
    assert len(WAYS) >= 20


@pytest.mark.parametrize("scorer", [numeric.SCORER, math_scorer.SCORER], ids=["numeric", "math"])
@pytest.mark.parametrize("way", sorted(WAYS))
@settings(deadline=None, max_examples=20)
@given(value=st.integers(-(10**9), 10**9), other=st.integers(-(10**9), 10**9))
def test_formatting_never_changes_the_verdict_and_a_changed_value_does(
    scorer: object, way: str, value: int, other: int
) -> None:
    read = scorer.read  # type: ignore[attr-defined]
    written = f"So the result follows.\nAnswer: {WAYS[way](value)}"
    assert read(ScoringInput("", (str(value),)), written).outcome == "correct", written
    for wrong in {other, value + 1, -value, value * 10} - {value}:
        assert read(ScoringInput("", (str(wrong),)), written).outcome == "incorrect", (
            wrong,
            written,
        )


@settings(deadline=None, max_examples=60)
@given(
    top=st.integers(-999, 999),
    bottom=st.integers(1, 99),
    step=st.integers(1, 5).map(lambda n: 2 * n),
)
def test_fractions_are_compared_exactly(top: int, bottom: int, step: int) -> None:
    value, near = Fraction(top, bottom), Fraction(top, bottom) + Fraction(step, 10_000)
    for one in (f"{top}/{bottom}", f"\\frac{{{top}}}{{{bottom}}}"):
        for scorer in (numeric, math_scorer):
            asked = ScoringInput("", (f"{value.numerator}/{value.denominator}",))
            assert scorer.read(asked, f"Answer: {one}").outcome == "correct"
            changed = ScoringInput("", (f"{near.numerator}/{near.denominator}",))
            assert scorer.read(changed, f"Answer: {one}").outcome == "incorrect"


@settings(deadline=None, max_examples=30)
@given(one=st.text(max_size=40), other=st.text(max_size=40))
def test_any_text_is_read_without_an_exception(one: str, other: str) -> None:
    for scorer in (numeric, math_scorer):
        assert scorer.read(ScoringInput("", (one,)), other).outcome in (
            "correct", "incorrect", "abstain", "error",
        )  # fmt: skip


def test_a_tolerance_of_the_query_is_kept_in_both_directions() -> None:
    asked = ScoringInput("", ("100",), metadata={"tolerance": 0.01})
    assert numeric.read(asked, "Answer: 101").outcome == "correct"
    assert numeric.read(asked, "Answer: 99").outcome == "correct"
    assert numeric.read(asked, "Answer: 101.1").outcome == "incorrect"
    absolute = ScoringInput("", ("0",), metadata={"absolute_tolerance": 0.5})
    assert numeric.read(absolute, "Answer: -0.5").outcome == "correct"
    assert numeric.read(absolute, "Answer: 0.6").outcome == "incorrect"


def test_percent_is_forgiven_where_the_question_asks_for_one() -> None:
    asked = ScoringInput("What percent of a day is 7.2 minutes?", ("0.5",))
    assert numeric.read(asked, "Answer: 0.5%").outcome == "correct"
    assert numeric.read(ScoringInput("How much?", ("0.5",)), "Answer: 0.5%").outcome == "incorrect"


def test_a_conflict_is_flagged_and_a_correction_is_not() -> None:
    asked = ScoringInput("", ("5",))
    assert numeric.read(asked, "The answer is 4.\nThe answer is 5.").conflict
    assert not numeric.read(
        asked, "The answer is 4. Wait, I made a mistake.\nThe answer is 5."
    ).conflict
    assert math_scorer.read(asked, "\\boxed{4}\n\\boxed{5}").conflict
    assert not math_scorer.read(asked, "\\boxed{5}\n\\boxed{5.0}").conflict
