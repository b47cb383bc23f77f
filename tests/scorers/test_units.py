"""What units and repeating decimals are worth, exactly or as people round them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from routeyard.pipelines.label.scorers.quantities import measured, plain, scan


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1 mi", "1609.344 m", True),
        ("100 ft", "30.49 m", True),  # rounded: no whole number of feet is a metre
        ("100 ft", "30.465 m", True),
        ("100 ft", "30.46 m", False),  # by more than one part in 2,000
        ("10 ft", "3.06 m", False),
        ("1 km", "1000.3 m", False),  # nothing is rounded between metres and kilometres
        ("1000.3 m", "1 km", False),
        ("5 lb", "80 oz", True),
        ("1 ft 6 in", "18 in", True),
        ("1 ft 6 in", "45.72 cm", True),
        ("5 ft 6 in", "5 ft 7 in", False),
        ("5 m", "5 s", False),
        ("200 cents", "$2", True),
        ("2 euros", "2 dollars", False),
    ],
)
def test_measures_are_the_same_quantity_in_both_directions(
    one: str, other: str, same: bool
) -> None:
    first, second = measured(one), measured(other)
    assert first is not None
    assert second is not None
    assert (first.same_as(second), second.same_as(first)) == (same, same)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"0.1\overline{6}", Fraction(1, 6)),
        (r".\overline{3}", Fraction(1, 3)),
        (r"1.23\overline{45}", Fraction(679, 550)),
        (r"2.\overline{142857}", Fraction(15, 7)),
        (r"0.\dot{3}", Fraction(1, 3)),
        ("2.(3)", Fraction(7, 3)),
    ],
)
def test_a_repeating_decimal_is_the_fraction_that_it_is(text: str, value: Fraction) -> None:
    (only,) = scan(plain(text))
    assert only.quantity is not None
    assert only.quantity.value == value


def test_a_factor_behind_a_decimal_is_no_repetition() -> None:
    assert [one.quantity.value for one in scan(plain("1.2(3)")) if one.quantity] == [
        Fraction(6, 5),
        3,
    ]
