"""One extractor: examples of every language and envelope, and answers that no clause may change."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.languages import NOUNS
from routeyard.pipelines.label.scorers.patterns import table
from routeyard.pipelines.label.scorers.reading import committed
from routeyard.pipelines.label.scorers.scorer import ScoreResult, ScoringInput

#: Sections of the examples that are languages.
LANGUAGES = [
    "english",
    "chinese",
    "hindi",
    "spanish",
    "french",
    "arabic",
    "bengali",
    "portuguese",
    "russian",
    "urdu",
    "indonesian",
    "german",
    "japanese",
    "marathi",
    "telugu",
    "tamil",
    "turkish",
    "korean",
    "vietnamese",
    "italian",
    "persian",
    "polish",
    "dutch",
    "thai",
    "ukrainian",
    "swahili",
    "czech",
    "swedish",
    "danish",
    "finnish",
    "greek",
    "hebrew",
    "romanian",
    "hungarian",
    "tagalog",
    "bulgarian",
    "croatian",
    "catalan",
]


def _examples() -> list[tuple[str, str | None, str]]:
    found, name = [], ""
    for line in Path(__file__).with_name("examples.txt").read_text("utf-8").splitlines():
        if line.startswith("== "):
            name = line[3:]
        elif " ¦ " in line and name:
            answer, _, text = line.partition(" ¦ ")
            found.append((name, answer.strip() or None, text.replace("⏎", "\n")))
    return found


EXAMPLES = _examples()


def read(
    scorer: str, reference: str, output: str, choices: tuple[str, ...] = (), question: str = ""
) -> ScoreResult:
    return SCORERS.get(scorer).read(ScoringInput(question, (reference,), choices), output)


@pytest.mark.parametrize(("name", "answer", "text"), EXAMPLES)
def test_examples_of_the_tables(name: str, answer: str | None, text: str) -> None:
    if answer is None:
        assert read("numeric", "8", text).outcome == "abstain"
    elif answer.isdigit():
        assert read("numeric", answer, text).outcome == "correct"
        assert read("numeric", "9", text).outcome in (
            "incorrect",
            "correct" if answer == "9" else "",
        )
    else:
        assert committed(text)[-1].text == answer


def test_every_language_states_and_denies() -> None:
    # Its words and its examples are all that a language is.
    rows = table("languages").values()
    named = {noun for row in rows for noun in row["answer"]}
    assert named <= NOUNS.keys()
    assert NOUNS.keys() - named <= {one for row in rows for one in row.get("choose", ())}
    for name in LANGUAGES:
        answers = [answer for language, answer, _ in EXAMPLES if language == name]
        assert len(set(answers)) > 1, f"{name}: an example of a denial is missing"
        assert None in answers


@pytest.mark.parametrize(
    ("scorer", "reference", "output", "outcome"),
    [
        # the envelope was taken for the answer
        ("literal", "[1, 2]", '{"reasoning": "r", "answer": [1, 2]}', "correct"),
        ("literal", "[1, 3]", '{"reasoning": "r", "answer": [1, 2]}', "incorrect"),
        ("literal", "''", '{"reasoning": "r", "answer": ""}', "correct"),
        ("literal", "'yes '", '{"answer": "yes "}', "correct"),
        ("literal", "'yes'", '{"answer": "yes "}', "incorrect"),
        ("literal", "'2'", '{"answer": "2"}', "correct"),  # a string, or the number it spells
        ("literal", "2", '{"answer": "2"}', "correct"),
        ("literal", "{'answer': 2}", '{"answer": 2}', "correct"),  # the object is the answer
        ("literal", "{'a': 1}", """{"reasoning": "r", "answer": "'{'a': 1}'"}""", "correct"),
        # what follows "since" is a reason
        ("numeric", "2", "The answer is 2 since x + 3 = 5.", "correct"),
        ("numeric", "5", "The answer is 2 since x + 3 = 5.", "incorrect"),
        ("math", "2", "The answer is 2 since x + 3 = 5.", "correct"),
        ("math", "5", "The answer is 2 since x + 3 = 5.", "incorrect"),
        # a part of a formula is no number
        ("numeric", "2", r"\boxed{\frac{\pi}{2}}", "incorrect"),
        ("numeric", "1", "The answer is 1/sqrt(pi).", "incorrect"),
        ("numeric", "2", r"The answer is \frac{\sqrt{3}}{2}.", "incorrect"),
        ("numeric", "2", r"The answer is \frac{4}{2}.", "correct"),
        # a denial and a bound commit to nothing
        ("numeric", "8", "The answer is not 8.", "abstain"),
        ("numeric", "2", "There are two bars with values larger than 4.", "correct"),
        ("numeric", "4", "There are two bars with values larger than 4.", "incorrect"),
        ("numeric", "5", "The answer is unknown.", "abstain"),
        ("numeric", "5", "Answer: 5. 6 would be wrong.", "abstain"),
        ("numeric", "2", '{"answer": [1, 2]}', "incorrect"),
        # a tag that holds a sentence
        (
            "numeric",
            "8",
            "<solution>So the answer is 8, and not 9 as before.</solution>",
            "correct",
        ),
        ("auto", "[]", '{"answer": "[3]"}', "incorrect"),  # a list, and no brackets to close
        ("auto", "[]", '{"answer": "[]"}', "correct"),
        ("auto", '"8.0"', "<solution> 8 </solution>", "correct"),  # a JSON string as reference
    ],
)
def test_minimal_cases(scorer: str, reference: str, output: str, outcome: str) -> None:
    assert read(scorer, reference, output).outcome == outcome


CHOICES = ("heavy", "light", "Elif", "Noor")


@pytest.mark.parametrize(
    ("output", "letter"),
    [
        ("so\n#### C", "C"),
        ("<solution> B ) light </solution>", "B"),
        ("【解析】选项A正确。<eoe>\n【答案】C <eoa>", "C"),
        ("【答案】: BC <eoa>", ""),  # several
        ("【答案】B，C <eoa>", ""),
        ("【答案】A和D <eoa>", ""),
        ("选项B正确。\n【答案】: 题目可能有误 <eoa>", None),  # the marked answer is none of them
        ("选项A、B、C都不正确，选项D正确。", "D"),
        ("A и B неверно, C верно.", "C"),
        ("A: light.", "conflict"),
        ("A ) light", "conflict"),
        ("A. light", "conflict"),  # the right letter, and another option's text
        ("The answer is A. light", "conflict"),
        ("A. heavy B. light C. Elif D. Noor", None),  # the options repeated
        ('{"answer": "C", "reasoning": "not A"}', "C"),
    ],
)
def test_options(output: str, letter: str | None) -> None:
    for key in "ABCD":
        reading = read("mcq", key, output, CHOICES)
        if letter in (None, "conflict"):
            assert (reading.outcome, reading.conflict) == ("abstain", letter == "conflict")
        else:
            assert reading.outcome == ("correct" if key == letter else "incorrect")


def test_options_that_a_question_lists_in_a_row() -> None:
    question = "How many?\nOptions: A ) 6 , B ) 121 , C ) 18107"
    for reference, outcome in (("b", "correct"), ("c", "incorrect")):
        reading = read("auto", reference, "<solution> B ) 121 </solution>", question=question)
        assert reading.outcome == outcome


# Metamorphic: what wraps an answer, in which language it is stated, what precedes and what
# follows it changes nothing; a wrong answer never becomes right.
WRAPS = [
    "{}",
    "<think>Is it {w}? The answer is {w}.</think>\n{}",
    "Let me think. First {w}, no.\n\n{}",
    "<solution>{}</solution>",
    "{}<|im_end|>",
    "{} <eoa>",
    "Step 1: 3 + 4 = 7.\n" * 40 + "{}",
]
REASONS = {
    "english": ["", " because {w} is too many.", ", since 3 + {w} is more."],
    "spanish": ["", " porque {w} es demasiado.", ", ya que 3 + {w} es más."],
    "german": ["", ", weil {w} zu viel ist."],
    "french": ["", " car {w} est trop."],
    "russian": ["", ", потому что {w} много."],
    "chinese": ["", "，因为{w}太多。"],
    "turkish": ["", ", çünkü {w} fazla."],
    "hindi": ["", " क्योंकि {w} अधिक।"],
}
STATED = [
    (name, text)
    for name, answer, text in EXAMPLES
    if name in LANGUAGES and answer == "8" and text.count("8") == 1
]


@pytest.mark.parametrize(("name", "text"), STATED)
def test_a_right_answer_stays_right_and_a_wrong_one_wrong(name: str, text: str) -> None:
    for wrap, reason, right in product(WRAPS, REASONS.get(name, [""]), ("17", "2.5", "-6")):
        wrong = "41"
        said = text.replace("8", right)
        if reason:
            said = said.rstrip(".。।") + reason.format(w=wrong)
        output = wrap.format(said, w=wrong)
        assert read("numeric", right, output).outcome == "correct", output
        assert read("numeric", wrong, output).outcome == "incorrect", output
        assert read("math", wrong, output).outcome != "correct", output


@pytest.mark.parametrize(("name", "text"), STATED)
def test_an_option_is_read_in_every_language(name: str, text: str) -> None:
    for wrap in WRAPS:
        output = wrap.format(text.replace("8", "C"), w="B")
        reading = read("mcq", "C", output, CHOICES)
        assert reading.outcome == "correct", (output, reading)
        assert read("mcq", "B", output, CHOICES).outcome == "incorrect"


@pytest.mark.parametrize("quote", ['"', "'"])
@pytest.mark.parametrize(
    "value", ["[1, 2]", "{'a': [1]}", "(1, 'b')", "'x, y'", "''", "True", "-3.5"]
)
def test_literals_in_objects(value: str, quote: str) -> None:
    inside = value.replace("'", '\\"') if quote == '"' else value.replace("'", '"')
    for form in (
        '{{"reasoning": "so \\"answer\\": 9", "answer": {q}{v}{q}}}',
        '```json\n{{\n  "answer": {q}{v}{q},\n  "reasoning": "not [9]"\n}}\n```',
        "Sure!\n{{'answer': {q}{v}{q}}}\nThat is it.",
    ):
        output = form.format(q=quote, v=inside)
        assert read("literal", value, output).outcome == "correct", output
        assert read("literal", "[7, 9]", output).outcome == "incorrect", output


def test_the_envelope_that_a_source_names_is_the_only_one_read() -> None:
    read_in = SCORERS.get("auto").score
    asked = ScoringInput("", ("8",), metadata={"answer_in": "solution"})
    found = read_in(asked, "Answer: 9\n<solution>8</solution> Answer: 9")
    assert (found.outcome, found.span) == ("correct", (20, 21))
    assert read_in(asked, '{"solution": "8", "answer": "9"}').outcome == "correct"
    assert read_in(asked, "<solution> 8").outcome == "correct"
    assert read_in(asked, "Answer: 8").outcome == "abstain"
    assert read_in(ScoringInput("", ("8",)), "Answer: 8").outcome == "correct"
