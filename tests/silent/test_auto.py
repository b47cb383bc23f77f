"""`auto` reads with all references and the question, and says how; answers that were misread."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import routeyard

WORDS = (
    "apple banana cherry date elder fig grape hazel iris jasmine kiwi lemon mango nectar olive "
    "papaya quince raisin sorrel thyme umbra violet"
)
SORT = f"Sort the following words alphabetically: List: {' '.join(reversed(WORDS.split()))}"


def outcome(scorer: str, output: str, *references: str, **more: Any) -> str:
    return routeyard.score(output, references, scorer=scorer, **more).outcome


@pytest.mark.parametrize(
    ("question", "references", "output"),
    [
        ("Where are alkali metals?", ("in the s-block", "group 1"), "They are in group 1, on top."),
        ("When did it come out?", ("1973", "October 1973"), "In October 1973; it sold 3 copies."),
        ("How many episodes are there?", ("291 episodes", "291"), "It has 291, of 24 minutes."),
        ("What was his position?", ("holder on placekicks", "quarterback"), "A quarterback."),
        ("What do you shout?", ("Yes", "Bingo", "Line"), "Bingo"),
        ("Which episode?", ('"Nelson\'s Sparrow"', "Nelson's Sparrow"), "It is Nelson's Sparrow."),
        ("Which vitamin is it?", ("C", "vitamin C"), "It is vitamin C."),
        ("Who invented it?", ("2006", "Conrad Lewis"), "Conrad Lewis, with 2 others."),
    ],
)
def test_all_references_are_read_whatever_their_order(
    question: str, references: tuple[str, ...], output: str
) -> None:
    # Trap: the first reference decided how all of them were read.
    ordered = permutations(references)
    assert {outcome("auto", output, *one, question=question) for one in ordered} == {"correct"}


@pytest.mark.parametrize(
    ("question", "reference", "output"),
    [
        ("What do the s elements share?", "in the s-block", "They are in the s-block."),
        ("What does it decay to?", "rubidium-85", "It decays into rubidium-85, as all 2 did."),
        ("How far is it?", "4.37 light-years", "It is 4.37 light-years away, give or take 0.1."),
        ("What type of tale is it?", "a moral tale", "The tale is a moral tale."),
        ("What does AUV mean?", "action utility vehicles", "An action utility vehicle."),
        ("Which dog is it?", "black cocker spaniel", "It is a black Cocker Spaniel."),
        ("When did it begin?", "1938", "It began in 1938. The wage was $0.25 per hour."),
        ("When was it founded?", "1957", "In 1957, with 312 cars."),
        ("Which film is it?", "12 Angry Men", "It is 12 Angry Men, made in 1957."),
        ("When did it happen?", "26 April", "It happened on April 26, 1986."),
        ("Which song is it?", "'Hey Jude'", "The song is Hey Jude."),
        ("Is it sorted by name, by date or by file size?", "by file size", "It is by file size."),
        ("How old is she?", "17-year-old", "She is a 17-year-old girl."),
        ("When is it open?", "9 am - 5 pm", "From 9 am - 5 pm."),
    ],
)
def test_prose_is_no_number_formula_or_word_list(
    question: str, reference: str, output: str
) -> None:
    assert outcome("auto", output, reference, question=question) == "correct"


@pytest.mark.parametrize(
    ("question", "reference", "output", "said"),
    [
        (SORT, WORDS, f"The answer is {' '.join(reversed(WORDS.split()))}", "incorrect"),
        ("Tom has 5 of 24 apples. How many are left?", "24", "24 - 5 = 19, so 19.", "incorrect"),
        ("How many are left of 5?", "3", "There are 4 left.", "incorrect"),
        ("How old do you have to be?", "16 or older", "You must be 18 or older.", "abstain"),
        ("When was it?", "1938", "It was in 1940, with 30 others.", "incorrect"),
        ("Which numbers, in order?", "1, 2, 3", "3, 2, 1", "abstain"),
        # a letter tells names apart, also one that is an article or no word elsewhere
        ("What do the s elements share?", "in the s-block", "They are in the d-block.", "abstain"),
        ("Which virus is it?", "hepatitis C", "It is hepatitis B, not A.", "abstain"),
        ("Which virus is it?", "hepatitis C", "It is hepatitis c.", "correct"),
        ("Who was it?", "John D. Rockefeller", "It was John Rockefeller.", "correct"),
        ("Write f(x).", "2x + 1", "The answer is 1 + 2x.", "correct"),
        ("Is it positive, negative or neutral?", "neutral", "positive", "incorrect"),
        ("What does f return? def f(x): return x", "'a b'", "'A B'", "incorrect"),
    ],
)
def test_what_is_strict_stays_strict(question: str, reference: str, output: str, said: str) -> None:
    assert outcome("auto", output, reference, question=question) == said


def test_a_number_that_cannot_be_read_is_no_way_out_of_the_count() -> None:
    asked = {"question": "How many people live there?"}
    assert outcome("contains", "It has 1,9 million people.", "1.9 million", **asked) == "correct"
    for said in ("1.2.3 million", "1,900,5 thousand", "1:30 million"):
        assert outcome("contains", said, "two cities", **asked) in ("incorrect", "abstain")


@pytest.mark.parametrize("scorer", ["auto", "numeric", "literal", "math"])
def test_floats_agree_up_to_the_rounding_of_their_last_digits(scorer: str) -> None:
    form = "[ANSWER]{}[/ANSWER]" if scorer == "literal" else "Answer: {}"
    for reference, answer, said in (
        ("0.6666666666666667", "0.6666666666666666", "correct"),
        ("33.333333333333336", "33.33333333333333", "correct"),
        ("6.666666666666667e-05", "6.666666666666666e-05", "correct"),
        ("0.6666666666666667", "0.6666666666666607", "incorrect"),
        ("12345678901234567", "12345678901234568", "incorrect"),
    ):
        assert outcome(scorer, form.format(answer), reference) == said, (reference, answer)
    nested = "[ANSWER][1, {'a': 0.6666666666666666}][/ANSWER]"
    assert outcome("literal", nested, "[1, {'a': 0.6666666666666667}]") == "correct"


OPTIONS = ("alpha", "beta", "gamma", "delta", "an electron pair")


@pytest.mark.parametrize(
    ("output", "letter"),
    [
        # articles and pronouns that look like letters
        ("The answer is E, a sigma bond.", "E"),
        ("Answer: E, a bond that is shared", "E"),
        ("E, a sigma bond", "E"),
        ("The answer is (E), a theory.", "E"),
        ("I choose E, a bond.", "E"),
        ("Answer: D, I think.", "D"),
        ("A resposta é E, o elo.", "E"),
        ("The answers are B and E.", ""),
        ("Answer: B, E", ""),
        # a letter again and again, as prompts ask
        ("DDDDD", "D"),
        ("Beta is close.\n\nDDDDD", "D"),
        ("**DDDDD**", "D"),
        ("The answer is DDDDD.", "D"),
        ("Answer: D D D D D", "D"),
        ("D, D, D, D, D", "D"),
        ('{"answer": "DDDDD"}', "D"),
        ("AAAAA", "A"),
        ("BBBBB or DDDDD", None),
        # between noun and verb, and on the next line
        ("Not A.\nThe answer (letter only) is D", "D"),
        ("Not A.\nThe answer is\n\n> D", "D"),
        ("Not A.\nThe answer is:\n```\nD\n```", "D"),
        ("Not A.\nSo the answer is:\n\n- D", "D"),
    ],
)
def test_options_are_read_where_they_are_named(output: str, letter: str | None) -> None:
    for key in "ABCDE":
        said = outcome("mcq", output, key, choices=OPTIONS)
        expected = "abstain" if letter is None else "correct" if key == letter else "incorrect"
        assert said == expected, (key, said)


@pytest.mark.parametrize(
    "end",
    [
        "The answer (in arabic numerals) is 12",
        "The answer (as an integer) is **12**.",
        "The result [to the nearest integer] is 12",
        "The answer, in simplest form, is 12",
        "La respuesta (en números arábigos) es 12",
        "答案（用阿拉伯数字）是12",
        "The answer (arabic numerals) is\n12",
        "The answer is as follows:\n\n12",
        "The final answer is given below:\n12",
        "The answer is:\n```\n12\n```",
        "The answer is equal to\n12",
    ],
)
@pytest.mark.parametrize("scorer", ["numeric", "auto", "em"])
def test_an_answer_is_read_behind_an_aside_and_on_the_next_line(scorer: str, end: str) -> None:
    said = f"We have 3 + 4 = 7 of them and more.\n{end}"
    assert outcome(scorer, said, "12") == "correct"
    assert outcome(scorer, said, "7") != "correct"


def test_an_aside_that_is_a_condition_states_no_answer() -> None:
    assert outcome("numeric", "We have 7.\nThe answer (assuming no tax) is 12", "12") == "abstain"
    assert outcome("numeric", "The answer is:\n- 12", "12") == "abstain"  # or minus 12


@pytest.mark.parametrize(
    "listed",
    [
        "The answer is " + WORDS,
        "The answer is " + WORDS.replace(" ", ", ") + ".",
        "The answer is " + WORDS.replace(" ", " < "),
        "The answer is:\n" + WORDS.replace(" ", "\n"),
        "The answer is:\n- " + WORDS.replace(" ", "\n- ") + "\n\nI hope that helps!",
        "Answer:\n" + "\n".join(f"{i}. {word}" for i, word in enumerate(WORDS.split(), 1)),
    ],
)
def test_a_long_list_behind_the_mark_is_the_answer(listed: str) -> None:
    # Trap: the working was read instead, because the stated answer was long.
    said = f"First the letter of apple, which is a; then b.\n{listed}"
    assert outcome("auto", said, WORDS, question=SORT) == "correct"
    other = WORDS.replace("apple banana", "banana apple")
    assert outcome("auto", said, other, question=SORT) == "incorrect"


RECIPE = """
name: facts
version: 1.0.0
sources:
- name: facts
  path: questions.parquet
  scorer: auto
  fields: {id: id, question: question, references: references}
pool: {models: [{model_id: one}, {model_id: two}]}
collect:
  provider: recorded
  recorded:
  - path: answers.parquet
    fields: {query: query, model: model, text: text, cost_usd: cost_usd}
curate: []
release:
  title: facts
  license: CC0-1.0
  waivers: [{gate: metering, reason: the answers are invented}]
"""


def test_the_card_counts_how_auto_read(call: Any, tmp_path: Path) -> None:
    facts = [
        ("When did the war end?", ["1911"], "It ended in 1911, after 7 years.", "In 1912."),
        ("Where is sodium?", ["in the s-block"], "It is in the s-block.", "In the d-block."),
        ("What is 3 + 4?", ["7"], "Answer: 7", "Answer: 8"),
        ("Is it so?", ["yes"], "Yes.", "No."),
    ]
    questions = [
        {"id": f"q{i}", "question": f"{'x' * i} {facts[i % 4][0]}", "references": facts[i % 4][1]}
        for i in range(24)
    ]
    answers = [
        {"query": f"q{i}", "model": model, "text": facts[i % 4][place], "cost_usd": 0.001 * place}
        for i in range(24)
        for place, model in ((2, "one"), (3, "two"))
    ]
    pq.write_table(pa.Table.from_pylist(questions), tmp_path / "questions.parquet")
    pq.write_table(pa.Table.from_pylist(answers), tmp_path / "answers.parquet")
    (tmp_path / "facts.yaml").write_text(RECIPE)
    done = call("build", tmp_path / "facts.yaml", "--workspace", tmp_path / "yard", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    release = tmp_path / "yard" / "releases" / "facts" / "1.0.0"
    card = (release / "README.md").read_text()
    for shape, right in (("number or short text", 6), ("word of a closed pair", 6)):
        assert f"| {shape} | 12 | {right} |" in card, card
    verdicts = pq.read_table(release / "data" / "verdicts.parquet").to_pylist()
    assert all(row["reason"].startswith("read as ") for row in verdicts)


@pytest.mark.parametrize(("opened", "closed"), [("◁think▷", "◁/think▷"), ("[THINK]", "[/THINK]")])
def test_what_stands_only_in_thinking_is_no_answer(opened: str, closed: str) -> None:
    for scorer in ("auto", "numeric", "math", "em"):
        thought = f"{opened}The answer is 5.{closed}\nI could not do it."
        assert routeyard.score(thought, ("5",), scorer=scorer).outcome != "correct", scorer
        said = f"{opened}The answer is 9.{closed}\nThe answer is 5."
        assert routeyard.score(said, ("5",), scorer=scorer).outcome == "correct", scorer


@pytest.mark.parametrize(
    ("output", "outcome"),
    [
        ("Working: 59 before 1? No.\nThe answer is 1, 2, 59.", "correct"),
        ("Answer: 1, 2, 59", "correct"),
        ("The answer is 1, 59, 2.", "incorrect"),
        ("The answer is 1, true.", "incorrect"),
        ("The answer is (1, 2, 59).", "incorrect"),  # a tuple that says so
        ("```python\n1, 2, 59\n```", "incorrect"),
    ],
)
def test_a_list_in_words_needs_no_brackets(output: str, outcome: str) -> None:
    assert routeyard.score(output, ("[1, 2, 59]",), scorer="auto").outcome == outcome
