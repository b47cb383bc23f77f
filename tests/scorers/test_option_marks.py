"""Where an option stands in a text: the span that a person is shown, and letters that are words."""

from __future__ import annotations

import pytest

from pipelines.scorers.answers.option_marks import commitments
from pipelines.scorers.answers.plain_option import plainly
from pipelines.scorers.mcq import read
from pipelines.scorers.scorer import Asked

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@pytest.mark.parametrize(
    ("text", "letter", "said"),
    [
        ("Look at (C) again", "C", "(C)"),  # the only one, and marked as an option
        ("E es la correcta", "E", "E"),
        ("So A is it", "A", "A"),
    ],
)
def test_an_option_in_plain_words_and_its_span(text: str, letter: str, said: str) -> None:
    found = plainly(text, 0, len(text), LETTERS)
    assert found is not None
    assert (found[0], text[found[1] : found[2]]) == (letter, said)


@pytest.mark.parametrize("text", ["Creo que E es la correcta", "So A good one", "I think so"])
def test_articles_pronouns_and_conjunctions_are_no_options(text: str) -> None:
    assert plainly(text, 0, len(text), LETTERS) is None


def test_a_list_is_one_answer_from_its_first_letter_on() -> None:
    text = "The answers are:\n* (E) for the cost.\n* (E) for the number."
    (only,) = commitments(text, len(text), "ABCDE", ())
    assert only.letters == "E"
    assert text[only.start : only.end] == "E) for the cost.\n* (E) for the number."


def test_a_reference_that_is_no_option_is_an_error() -> None:
    assert read(Asked("", ("Q9",), ("x", "y")), "B").outcome == "error"


def test_an_answer_at_the_beginning_of_a_long_text_is_read() -> None:
    # Only of texts beyond `MOST_READ` the middle is left out.
    text = "The answer is (B). " + "word " * 30_000
    assert read(Asked("", ("B",), ("x", "y")), text).outcome == "correct"


def test_an_output_that_is_an_option_and_a_remark_on_it() -> None:
    reading = read(Asked("", ("B",), ("x", "y")), "(B) the biggest one")
    assert (reading.extracted, reading.span) == ("B", (1, 2))


@pytest.mark.parametrize("text", ["The answer is C major.", "the answer is b because it is"])
def test_a_letter_that_a_word_follows_is_no_marked_answer(text: str) -> None:
    assert commitments(text, len(text), "ABC", ()) == []
    assert commitments("The answer is C because", 23, "ABC", ()) != []
