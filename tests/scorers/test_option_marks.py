"""Where an option stands in a text: the span that a person is shown, and letters that are words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from routeyard.pipelines.label.scorers.languages import ENGLISH, NOUNS
from routeyard.pipelines.label.scorers.mcq import SCORER, last_stated, plainly, read
from routeyard.pipelines.label.scorers.option_marks import (
    commitments,
    matching,
    spelled_out,
)
from routeyard.pipelines.label.scorers.reading import SIGNS, committed
from routeyard.pipelines.label.scorers.scorer import LETTERS, UNMARKED, ScoreResult, ScoringInput

OPTIONS = {"A": "rome", "B": "eternal city of paris", "C": "new york", "D": "york"}


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


def test_a_list_is_one_answer_from_its_first_letter_on() -> None:
    text = "The answers are:\n* (E) for the cost.\n* (E) for the number."
    (only,) = commitments(text, "ABCDE", {})
    assert only.letters == "E"
    assert text[only.start : only.end] == "E) for the cost.\n* (E) for the number."


def test_a_reference_that_is_no_option_is_an_error() -> None:
    assert read(ScoringInput("", ("Q9",), ("x", "y")), "B").outcome == "error"


def test_an_answer_at_the_beginning_of_a_long_text_is_read() -> None:
    # Only of texts beyond `MOST_READ` the middle is left out.
    text = "The answer is (B). " + "word " * 30_000
    assert read(ScoringInput("", ("B",), ("x", "y")), text).outcome == "correct"


def test_an_output_that_is_an_option_and_a_remark_on_it() -> None:
    reading = read(ScoringInput("", ("B",), ("x", "y")), "(B) the biggest one")
    assert (reading.extracted, reading.span) == ("B", (1, 2))


@pytest.mark.parametrize("text", ["The answer is C major.", "the answer is b because it is"])
def test_a_letter_that_a_word_follows_is_no_marked_answer(text: str) -> None:
    assert commitments(text, "ABC", {}) == []
    assert commitments("The answer is C because", "ABC", {}) != []


@pytest.mark.parametrize(
    ("text", "letters", "how", "said"),
    [
        ('{"answer": "B"}', "B", "field", "B"),
        ("[ANSWER] C [/ANSWER]", "C", "field", "C"),
        ("The answers are A and B.", "AB", "stated", "A and B"),
        ("The answer is B or C", "BC", "stated", "B or C"),
        ("the correct choice is C", "C", "correct", "C"),
        ("Option C is correct", "C", "option", "C"),
        ("Choice (C) is the answer", "C", "stated", "C"),
        ("I would go with (D)", "D", "choose", "D"),
        ("final choice: C", "C", "final", "C"),
        (r"\boxed{BD}", "BD", "boxed", "BD"),
        ("The answer to the question is D", "D", "stated", "D"),
        ("The answer is New York.", "C", "stated, by content", "New York."),
        ("The answer is (a) Rome", "A", "stated, by content", "a) Rome"),
        ("Answer: A. Rome** and **D. York is too", "AD", "label", "A"),
        ("The closest option among these is (C)", "C", "closest", "C"),
        ("正确答案是C", "C", "stated", "C"),
        ("The answer is\n* (B) for one\n* (C) for two", "BC", "stated", None),
    ],
)
def test_a_marked_option(text: str, letters: str, how: str, said: str | None) -> None:
    (only,) = commitments(text, "ABCD", OPTIONS)
    assert (only.letters, only.how) == (letters, how)
    assert text[only.start : only.end] == (said or "B) for one\n* (C) for two")
    assert only.firm is (how not in ("option", "choose", "closest"))


@pytest.mark.parametrize(
    "text",
    [
        "answer> C",  # the end of no tag
        "The answer is not B",
        "Option C is right if it rains",
        "option C",
        "answer is C-major",
        "the answer is F(x) = 3",
        "The answer is Z",
        "Answers B",
        "xanswer: B",
    ],
)
def test_what_marks_no_option(text: str) -> None:
    assert commitments(text, "ABCD", OPTIONS) == []


def test_a_weak_mark_counts_where_nothing_firm_is_said() -> None:
    text = "Option C is correct. The answer is B."
    assert [one.letters for one in commitments(text, "ABCD", {})] == ["B"]
    assert commitments(text[:20], "ABCD", {})[0].letters == "C"


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("It says C. New York in the text", "C"),
        ("I see B) Eternal citty of Paris here", None),  # a slip of spelling
        ("I see B) Eternal town of London here", None),
        ("C. New York and A. Rome", None),  # discusses both
        ("not C. New York", None),
        ("C. New York is wrong", None),
        ("A. Rome " + "X. foo " * 11, "A"),
        ("A. Rome " + "X. foo " * 12, None),  # goes through its options
    ],
)
def test_the_one_option_that_is_spelled_out(text: str, letter: str | None) -> None:
    found = spelled_out(text, OPTIONS)
    assert [one.letters for one in found] == ([letter] if letter else [])
    assert [text[one.start : one.end] for one in found] == ([letter] if letter else [])


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Rome", "A"),
        ("rome, as said", "A"),  # its first clause
        ("New York city", "C"),  # the longest that opens it
        ("York!", "D"),
        ("the new york", "C"),
        ("none", None),
        ("", None),
        ("Rome beyond all doubt", "A"),
        ("Romeo", None),
    ],
)
def test_the_option_that_a_text_repeats(text: str, letter: str | None) -> None:
    assert matching(text, OPTIONS) == letter
    assert matching("rome", {**OPTIONS, "E": "rome"}) is None  # two of them


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


#: What precedes a last sentence: nothing of a mark, marks of each kind, and what changes a mark.
BEFORE = (
    "", "It is hot.", "It is hot!", "Hence (B) is tempting.", "The answer is (B).", "Answer: B\n",
    "finish(B).", "<answer>B</answer>.", '{"answer": "B"}.', "\\boxed{B}.", "#### B\n",
    "I choose B.", "答案是B。", "Respuesta: B.", "Suppose it is cold.", "If it is cold.",
    "It is not the wrong\n", "Some say so.", "Final.", "The correct option is B.", "<think>Hm.",
    "~~No.~~", "| Answer |\n", "Is it hot? I doubt that", "If it is cold,",
    "I do not think that\n", "The student's\n",
)  # fmt: skip
SENTENCES = (
    "The answer is (C).", "So, the correct answer is C.\n\n", "The final answer is **C**.",
    "answer is C", "The answer would be (C).", "is the answer.", "The answer is (C), wait.",
    "Answer: C", "C",
    "The answer is (C).\n\nQuestion: What?", "the wrong answer is C", "The answer is (C) rome.",
)  # fmt: skip


@pytest.mark.parametrize("sentence", SENTENCES)
def test_many_outputs_at_once_are_read_as_one_by_one(sentence: str) -> None:
    between = ("\n", " ", ". ", "(", "{")
    texts = [f"{before}{sign}{sentence}" for before in BEFORE for sign in between]
    asked = ScoringInput("Which?", ("C",), ("rome", "paris", "new york", "york"))
    for text, one in zip(texts, last_stated(texts), strict=True):
        if one is not None and one is not UNMARKED:
            said = ScoreResult.of(one.letter == "C", one.letter, one[1:3], f"{one.how}: C")
            assert SCORER.score(asked, text) == said, text


def test_most_outputs_are_read_at_once() -> None:
    texts = ["It is hot.", "The answer is (C).\n\n", "2 × 3 = 6. Hence the answer is B"]
    assert [one and one.letter for one in last_stated(texts)] == ["", "C", "B"]
    assert last_stated([]) == []


@pytest.mark.parametrize("form", [str, str.upper, str.title])
def test_no_word_that_names_an_answer_is_passed_over(form: Callable[[str], str]) -> None:
    words = [word for word in (*NOUNS, *SIGNS) if form(word).lower() == word]  # not "YANIT"
    read_at_once = last_stated([f"It is {form(word)} B. The answer is (C)." for word in words])
    spared = {word for word, one in zip(words, read_at_once, strict=True) if one}
    assert UNMARKED not in read_at_once
    # other languages' nouns in ASCII count only where a text marks nothing else
    assert spared <= {word for word in words if word.isascii() and word not in ENGLISH.nouns}


@pytest.mark.parametrize("text", [*BEFORE, "(C)", "It is hot.\n\nC", "So C.", "Is it C? No."])
def test_a_text_without_marks_is_read_as_others_are(text: str) -> None:
    asked = ScoringInput("Which?", ("C",), ("rome", "paris", "new york", "york"))
    if last_stated([text]) == [UNMARKED]:
        assert committed(text) == ()
        assert commitments(text, LETTERS, OPTIONS) == []
        assert read(replace(asked, unmarked=True), text) == read(asked, text)
