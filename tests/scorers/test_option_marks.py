"""How an option is named in a text: the span that a person is shown, and letters that are words."""

from __future__ import annotations

import pytest

from routeyard.pipelines.label.scorers.mcq import plainly, read
from routeyard.pipelines.label.scorers.scorer import LETTERS, ScoringInput

OPTIONS = ("rome", "eternal city of paris", "new york", "york")


@pytest.mark.parametrize(
    ("text", "letter", "said"),
    [
        ("Look at (C) again", "C", "(C)"),  # the only one, and marked as an option
        ("E es la correcta", "E", "E"),
        ("So A is it", "A", "A"),
    ],
)
def test_an_option_in_plain_words_and_its_span(text: str, letter: str, said: str) -> None:
    found = plainly(text, LETTERS)
    assert found is not None
    assert (found[0], text[found[1] : found[2]]) == (letter, said)


@pytest.mark.parametrize("text", ["Creo que E es la correcta", "So A good one", "I think so"])
def test_articles_pronouns_and_conjunctions_are_no_options(text: str) -> None:
    assert plainly(text, LETTERS) is None


def test_a_reference_that_is_no_option_is_an_error() -> None:
    assert read(ScoringInput("", ("Q9",), ("x", "y")), "B").outcome == "error"


def test_an_answer_at_the_beginning_of_a_long_text_is_read() -> None:
    # Only of texts beyond `MOST_READ` the middle is left out.
    text = "The answer is (B). " + "word " * 30_000
    assert read(ScoringInput("", ("B",), ("x", "y")), text).outcome == "correct"


def test_an_output_that_is_an_option_and_a_remark_on_it() -> None:
    reading = read(ScoringInput("", ("B",), ("x", "y")), "(B) the biggest one")
    assert (reading.extracted, reading.span) == ("B", (1, 2))


@pytest.mark.parametrize("text", ["the answer is c because it is"])
def test_a_letter_that_a_word_follows_is_no_marked_answer(text: str) -> None:
    asked = ScoringInput("", ("C",), OPTIONS)
    assert read(asked, text).outcome == "abstain"
    assert read(asked, "The answer is C because").outcome == "correct"


@pytest.mark.parametrize(
    ("text", "letters", "how", "said"),
    [
        ('{"answer": "B"}', "B", "field", "B"),
        ("[ANSWER] C [/ANSWER]", "C", "field", "C"),
        ("Choice (C) is the answer", "C", "stated", "C"),
        ("Option C is correct", "C", "plain statement", "C"),
        ("the correct choice is C", "C", "plain statement", "C"),
        ("I would go with (D)", "D", "plain statement", "D"),
        ("final choice: C", "C", "plain statement", "C"),
        ("The answer to the question is D", "D", "stated", "D"),
        ("The answer is New York.", "C", "stated, by content", "New York."),
        ("The answer is (a) Rome", "A", "stated, by content", "a) Rome"),
        ("正确答案是C", "C", "stated", "C"),
    ],
)
def test_a_named_option(text: str, letters: str, how: str, said: str) -> None:
    reading = read(ScoringInput("", (letters,), OPTIONS), text)
    assert reading.reason.startswith(how), reading
    assert reading.reason.endswith(f" {letters}")
    assert reading.span is not None
    assert said in text[slice(*reading.span)]


@pytest.mark.parametrize(
    "text",
    [
        "answer> C",  # the end of no tag
        "The answer is not B",
        "answer is C-major",
        "the answer is F(x) = 3",
        "Answers B",
    ],
)
def test_what_names_no_option(text: str) -> None:
    reading = read(ScoringInput("", ("C",), OPTIONS), text)
    assert reading.outcome == "abstain", reading


@pytest.mark.parametrize(
    ("text", "letters", "said"),
    [
        ("So D.", "D", "D."),
        ("not B but C", "C", "C"),
        ("A or C, but most likely C", "C", "C"),
        ("It could be A or C.", "AC", "A or C"),
        ("choose A or B. So B.", "B", "B."),
        ("A and B are wrong, C fits best", "C", "C"),
        ("C is tempting, D is right", "D", "D"),
        ("We can eliminate A, B, C, D, E, F and G", "H", None),
        ("We can eliminate A, B, C, D, E and F", None, None),  # two are left
        ("vitamin C", None, None),
        ("Is it C? No.", None, None),
        ("It is (A), (B), and (C)", None, None),
        ("B = 5 is true", None, None),
        ("x" * 250 + ". " + "The rest says so. " * 5 + "So D.", "D", "D."),
        ("What tells against it is (G). " + "The presence of it. " * 25, None, None),
    ],
)
def test_an_option_in_plain_words(text: str, letters: str | None, said: str | None) -> None:
    found = plainly(text, "ABCDEFGH")
    assert (found[0] if found else None) == letters
    if found and said:
        assert text[found[1] : found[2]] == said
