"""Numbers that are spelled out: what belongs to one, and what it is worth."""

from __future__ import annotations

from fractions import Fraction

import pytest

from routeyard.pipelines.label.scorers.quantities import spoken


@pytest.mark.parametrize(
    ("text", "value", "said"),
    [
        ("minus five", -5, "minus five"),
        ("Negative five", -5, "Negative five"),
        ("thousand", 1000, "thousand"),  # a scale alone is one of it
        ("half a million", 500_000, "half a million"),
        ("five hundred and", 500, "five hundred"),  # what follows is another sentence
        ("a hundred and more", 100, "a hundred"),
        ("And five", 5, "five"),
        ("of seven", 7, "seven"),
        ("three and two thirds", Fraction(11, 3), "three and two thirds"),
        ("two hundred nineteen", 219, None),
        ("a hundred twenty-one", 121, None),
        ("two thousand and five and two thirds", Fraction(6017, 3), None),
        ("two thousand three hundred and two thirds", Fraction(6902, 3), None),
        ("two dozen and two thirds", Fraction(74, 3), None),
        ("two and half", Fraction(5, 2), None),
    ],
)
def test_a_spelled_number_and_its_span(text: str, value: Fraction, said: str | None) -> None:
    found = spoken(text)
    assert found is not None
    number, start, end = found
    assert number == value
    assert text[start:end] == (said or text)


@pytest.mark.parametrize(
    "text", ["twenty-one two", "nineteen eighty-four", "ten five", "twenty fifteen", "five twenty"]
)
def test_digits_read_aloud_and_years_are_not_added_up(text: str) -> None:
    assert spoken(text) is None


@pytest.mark.parametrize("text", ["one two", "five and six", "five and six apples"])
def test_two_numbers_are_not_one(text: str) -> None:
    found = spoken(text)
    assert found is None or found[0] in (1, 2, 5, 6)


@pytest.mark.parametrize("text", ["three and thirds", "one two and two thirds"])
def test_a_fraction_without_its_count_or_whole_is_no_number(text: str) -> None:
    assert spoken(text) is None


def test_one_alone_is_a_pronoun_but_at_the_beginning() -> None:
    assert spoken("the one I mean") is None
    assert spoken("One") == (Fraction(1), 0, 3)
