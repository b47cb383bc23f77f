"""Printed values keep their digits; equal, differs and not comparable are told apart."""

from __future__ import annotations

import pytest

from routeyard.papers.paper import NOTHING, printed_value, verdict
from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.studies.study import StudyCell


@pytest.mark.parametrize(
    ("text", "unit", "value", "within", "spread"),
    [
        ("68.38±0.1", "percent", 0.6838, 0.00005, 0.001),
        ("-20.55", "points", -0.2055, 0.00005, None),
        ("+1.90", "points", 0.019, 0.00005, None),
        ("1,323", "count", 1323.0, 0.5, None),
        ("0.590", "number", 0.59, 0.0005, None),  # Trap: YAML reads 0.590 as 0.59.
        ("9.76e-11", "number", 9.76e-11, 0.0, None),
        ("100", "percent", 1.0, 0.005, None),
    ],
)
def test_a_printed_value_has_its_precision(
    text: str, unit: str, value: float, within: float, spread: float | None
) -> None:
    found = printed_value(text, unit)  # type: ignore[arg-type]
    assert found is not None
    assert (found.value, found.spread) == (pytest.approx(value), spread)
    assert found.within == pytest.approx(within, abs=1e-12)


def test_nothing_printed_is_no_value_and_a_word_is_refused() -> None:
    assert printed_value(NOTHING, "number") is None
    with pytest.raises(BadInput, match="no printed value"):
        printed_value("about 3", "number")


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [
        (0.68384, None, None, "equal"),  # rounds to what is printed
        (0.68386, None, None, "differs"),
        (0.68375, None, None, "equal"),  # half a unit away counts, whatever floats make of it
        (0.70, 0.68, 0.72, "equal"),
        (0.70, 0.69, 0.72, "differs"),
        (None, None, None, "not comparable"),
    ],
)
def test_a_verdict_is_by_precision_or_interval(
    value: float | None, low: float | None, high: float | None, expected: str
) -> None:
    printed = printed_value("68.38", "percent")
    assert printed is not None
    assert verdict(printed, StudyCell("r", "c", value, "percent", low, high), own=True) == expected


def test_on_other_data_no_value_is_equal() -> None:
    # Trap: a stand-in that happens to give the printed value.
    printed = printed_value("68.38", "percent")
    assert printed is not None
    assert verdict(printed, StudyCell("r", "c", 0.6838), own=False) == "not comparable"
    assert verdict(printed, None, own=True) == "not comparable"
