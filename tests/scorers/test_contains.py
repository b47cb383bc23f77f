"""`contains` and the default `em`: what is named, what is denied, and what neither can tell."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from benchmarks.answers.judged import compare, judged
from routeyard.pipelines.label.scorers import SCORERS, contains, em
from routeyard.pipelines.label.scorers.contains import Date, dates, forms, words
from routeyard.pipelines.label.scorers.scorer import ScoringInput


def outcome(references: str | tuple[str, ...], output: str, question: str = "") -> str:
    accepted = (references,) if isinstance(references, str) else references
    return contains.read(ScoringInput(question, accepted), output).outcome


#: Question; right answer; another answer of its kind.
FACTS = [
    ("What is the capital of France?", "Paris", "Lyon"),
    ("What is the capital of Bulgaria?", "Sofia", "Plovdiv"),
    ("Who wrote Faust?", "Johann Wolfgang von Goethe", "Friedrich Schiller"),
    ("How many planets are there?", "8", "11"),
    ("When was it released?", "May 16, 2018", "May 11, 2018"),
    ("Which city is the largest in Brazil?", "São Paulo", "Rio de Janeiro"),
]
#: Sentences that commit to {one}, whatever they say about {other}.
COMMITTED = [
    "{one}",
    "{one}.",
    "**{one}**",
    "Answer: {one}",
    "The answer is {one}.",
    "It is {one}, not {other}.",
    "That would be {one}. I checked it twice, and many sources agree on it.",
    "Let me think about this question.\n\nIt is {one}.",
    "It is {one} because the textbook says so.",
    "I believe it is {one}, which is often confused with {other}.",
    "It is {one}, although some people say {other}.",
    '{{"reasoning": "I looked it up.", "answer": "{one}"}}',
]
#: Sentences that name {one} and do not commit to it.
UNCOMMITTED = [
    "It is not {one}.",
    "It isn't {one}.",
    "Anything rather than {one}.",
    "It is either {one} or {other}.",
    "{one} or {other}",
    "It could be {one} or {other}.",
    "1. {other}\n2. {one}\n3. something else",
]


@pytest.mark.parametrize(("fact", "sentence"), list(product(FACTS, COMMITTED)))
def test_a_right_answer_stays_right_and_a_wrong_one_wrong(
    fact: tuple[str, str, str], sentence: str
) -> None:
    question, right, wrong = fact
    assert outcome(right, sentence.format(one=right, other=wrong), question) == "correct"
    # what is refused may name the reference in an aside, but never becomes correct
    assert outcome(right, sentence.format(one=wrong, other=right), question) != "correct"
    asked = ScoringInput(question, (right,))
    assert em.read(asked, sentence.format(one=right, other=wrong)).outcome != "incorrect"
    assert em.read(asked, sentence.format(one=wrong, other=right)).outcome != "correct"


@pytest.mark.parametrize(("fact", "sentence"), list(product(FACTS, UNCOMMITTED)))
def test_a_denied_or_an_alternative_reference_decides_nothing(
    fact: tuple[str, str, str], sentence: str
) -> None:
    question, right, wrong = fact
    assert outcome(right, sentence.format(one=right, other=wrong), question) == "abstain"


@pytest.mark.parametrize(
    ("reference", "output", "wanted"),
    [
        ("May 16, 2018", "It came out on May 11, 2018.", "incorrect"),  # F1 accepts it
        ("May 16, 2018", "16 May 2018", "correct"),
        ("May 16, 2018", "2018-05-16", "correct"),
        ("2018", "It came out on May 11, 2018.", "correct"),  # more exact
        ("May 16, 2018", "In 2018.", "abstain"),  # less exact
        ("1999", "in the late 1990s", "abstain"),
        ("10 June 1940", "Italy entered World War II on June 10, 1940.", "correct"),  # not day 2
        ("6–14 July", "from July 6th to July 14th", "correct"),
        ("2018年5月16日", "2018年5月16日です。", "correct"),
        ("2001", "He returned in 20011.", "correct"),  # a footnote's digit
        ("subdural hematoma", "epidural hematoma", "abstain"),  # F1 accepts it
        ("subdural hematoma", "epidural", "incorrect"),
        ("Wilhelm Conrad Röntgen", "It was Wilhelm Rontgen.", "correct"),
        ("B. R. Ambedkar", "Bhimrao Ramji Ambedkar", "correct"),
        ("Barack Obama", "Michelle Obama", "abstain"),
        ("Hugh S. Johnson", "Dr. Hugh Johnson Jr.", "correct"),
        ("Ricky Nelson", "was played byRicky Nelsonin the 1959 movie", "correct"),  # lost spaces
        ("$75,000", "The minimum is$75,0001.", "correct"),
        ("54 Mbit/s", "54 Mbps", "correct"),
        ("Twenty-seven", "There are 27 amendments.", "correct"),
        ("5 million", "5,000,000", "correct"),
        ("1", "They won it once.", "correct"),
        ("-5", "5", "incorrect"),
        ("C++", "C", "abstain"),
        ("C++", "It is written in C++.", "correct"),
        ("x-1", "x+1", "abstain"),
        ("yes", "Yes, it is.", "correct"),
        ("no", "Yes, there is no doubt.", "incorrect"),
        ("no", "There is no doubt that it is.", "abstain"),
        ("s", "Paris's", "abstain"),  # one letter occurs in any text
        ("The Who", "The Who", "correct"),  # nothing but words without content
        ("The Who", "Those who can.", "abstain"),
        ("Himalayas", "It is part of the Himalayan range.", "abstain"),  # as Austria, Australia
        ("Einstein", "巴黎", "abstain"),  # another script
        ("Paris", "I'm sorry, but I couldn't find any information about it.", "incorrect"),
        ("Paris", "", "abstain"),
        ("东京", "日本的首都是东京。", "correct"),
        ("东京", "不是东京，是大阪。", "abstain"),
        ("東京", "日本の首都は東京です。", "correct"),
        ("東京", "日本の首都は東京ではありません。", "abstain"),
        ("パリ", "パリスです", "incorrect"),
        ("서울", "한국의 수도는 서울입니다.", "correct"),
        ("Москва", "Столица России — Москва.", "correct"),
        ("Москва", "Es ist nicht Москва.", "abstain"),
        ("القاهرة", "عاصمة مصر هي القاهرة.", "correct"),
        ("दिल्ली", "भारत की राजधानी दिल्ली है।", "correct"),
        ("กรุงเทพ", "เมืองหลวงคือกรุงเทพมหานคร", "correct"),
        ("Berlin", "Die Hauptstadt ist nicht Berlin.", "abstain"),
        ("Paris", "La capitale est Paris, parce que le gouvernement y siège.", "correct"),
        ("Paris", "Es ist Lyon, weil Paris zu groß ist.", "abstain"),
    ],
)  # fmt: skip
def test_values_names_and_scripts(reference: str, output: str, wanted: str) -> None:
    assert outcome(reference, output) == wanted


def test_any_reference_makes_an_answer_right_and_all_have_to_be_missed() -> None:
    assert outcome(("Catholic", "Protestant"), "Most are Protestants.") == "correct"
    assert outcome(("hit points or health points",), "Health Points") == "correct"
    assert outcome(("copper (Cu)",), "Cu") == "correct"
    assert outcome(("Lyon", "the city by the river"), "Marseille by the river") == "abstain"


def test_what_the_question_says_proves_nothing() -> None:
    question = "What culture region is Germany a part of?"
    said = "Germany is a part of the Central European culture region."
    assert outcome("Central Germany", said, question) == "abstain"


def test_a_span_is_in_the_output() -> None:
    output = 'Well. {"answer": "Sofia"}'
    reading = contains.read(ScoringInput("", ("Sofia",)), output)
    assert reading.span is not None
    assert output[slice(*reading.span)] == reading.extracted == "Sofia"


def test_equal_answers_have_equal_words() -> None:
    assert forms("The twenty-first of the U.S. Presidents") == forms("21st USA president")
    assert forms("2.5 million people") == forms("2,500,000 people")
    read = [date for date, _, _ in dates(words("on 3 March 1999, 2.5.2000 or in 2001"))]
    assert read == [Date(1999, 3, 3), Date(2000, 5, 2), Date(2001, None, None)]
    assert Date(1999, 3, 3).within(Date(1999, None, None))
    assert not Date(1999, None, None).excludes(Date(None, 3, 3))


def test_a_reference_year_does_not_accept_another_day_than_an_exact_reference() -> None:
    asked = ScoringInput("When did the war begin?", ("1914", "28 July 1914"))
    assert contains.read(asked, "It began on 28 July 1914.").outcome == "correct"
    assert contains.read(asked, "It began in 1914.").outcome == "correct"
    assert contains.read(asked, "It began on 3 August 1914.").outcome != "correct"


@pytest.mark.parametrize(
    ("reference", "output", "wanted"),
    [
        ("Paris", "The capital of France is Paris.", "abstain"),  # was incorrect
        ("Wilhelm Conrad Röntgen", "Wilhelm Röntgen", "abstain"),
        ("x b c", "b x c", "incorrect"),  # another order
        ("Paris", "Lyon", "incorrect"),
        ("Paris", "It is a large city in the north of France, on the Seine.", "abstain"),
        ("Paris", "I have thought about this for very long.\nAnswer: Lyon", "incorrect"),
    ],
)
def test_exact_match_calls_only_another_answer_incorrect(
    reference: str, output: str, wanted: str
) -> None:
    assert em.read(ScoringInput("", (reference,)), output).outcome == wanted


def test_strict_exact_match_is_the_papers() -> None:
    strict = SCORERS.get("em_strict").read
    assert strict(ScoringInput("", ("Paris",)), "The capital is Paris.").outcome == "incorrect"
    assert strict(ScoringInput("", ("Paris",)), "Paris.").outcome == "correct"


@pytest.mark.data
def test_people_agree_on_15098_answers_of_five_systems(data: Path) -> None:
    # The order of the five has to be the people's: a rule that never accepts a sentence inverts it.
    rows = list(judged(data, "evouna_nq"))
    found = compare(rows, "contains", "evouna_nq", None)
    assert found["answers"] == 15_098
    assert found["decided"] >= 83.5
    assert found["agreement"] >= 90
    assert found["precision_correct"] >= 98
    assert found["precision_incorrect"] >= 92
    people = found["accuracy_of_models"]
    assert sorted(people, key=lambda name: people[name][0]) == sorted(
        people, key=lambda name: people[name][1]
    )


@pytest.mark.data
def test_exact_match_rejects_few_of_the_answers_that_people_accept(data: Path) -> None:
    rows = list(judged(data, "evouna_nq"))
    assert compare(rows, "em", "evouna_nq", None)["precision_incorrect"] >= 90


def test_case_is_no_other_answer() -> None:
    references = (
        "President of the United States", "Doctor Who", "5 kilometres", "10 a.m.", "Marie Curie",
        "3 minutes", "Dr. No", "10 km/h", "May 11, 2018", "twenty-one", "São Paulo", "O'Neill",
    )  # fmt: skip
    cases = (str, str.lower, str.upper, str.title)
    for reference, given, said in product(references, cases, cases):
        assert outcome(given(reference), said(reference)) == "correct", (given, said, reference)


CONFUSABLE = [
    line.split(" ¦ ")
    for line in Path(__file__).with_name("confusable.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


def test_what_is_easily_confused_is_never_correct() -> None:
    assert len(CONFUSABLE) >= 200
    slavic = ("Co je správně?", "Как это называется?")
    sentences = ("{}", "It is {}.", "The answer is {}.", "Answer: **{}**", "To je {}.")
    for one, other in CONFUSABLE:
        questions = ("Which one is it?", *(() if f"{one}{other}".isascii() else slavic))
        for question, sentence, scorer in product(questions, sentences, ("contains", "em", "auto")):
            read = SCORERS.get(scorer).score
            for reference, said in ((one, other), (other, one)):
                if reference.casefold() in said.casefold():
                    continue  # "Guinea" is a word of "Equatorial Guinea"
                result = read(ScoringInput(question, (reference,)), sentence.format(said))
                assert result.outcome != "correct", (scorer, reference, said, result.reason)


@pytest.mark.parametrize(
    ("question", "reference", "output", "wanted"),
    [
        ("Kde se narodil?", "Malé Svatoňovice", "Narodil se v Malých Svatoňovicích.", "correct"),
        ("Jaké je hlavní město Česka?", "Praha", "Sídlí v Praze.", "correct"),
        ("Jaké je hlavní město Česka?", "Praha", "Sídlí v Brně.", "incorrect"),
        ("Kdo napsal R.U.R.?", "Karel Čapek", "Drama bylo napsáno Karlem Čapkem.", "correct"),
        ("Kdo napsal R.U.R.?", "Karel Čapek", "Hru napsal Josef Kajetán Tyl.", "incorrect"),
        ("Kdy vznikla republika?", "28. října 1918", "Vznikla 28. 10. 1918.", "correct"),
        ("Kdy vznikla republika?", "28. října 1918", "V červenci 1919.", "incorrect"),
        ("Ve kterém státě leží Lagos?", "Nigérie", "Leží v Nigérii.", "correct"),
        ("Где родился Пушкин?", "Москва", "Пушкин родился в Москве.", "correct"),
        ("Где родился Пушкин?", "Москва", "Пушкин родился в Киеве.", "incorrect"),
        ("Kolik krajů má Česko?", "14", "Česko má 12 krajů.", "incorrect"),
    ],
)
def test_an_ending_of_case_is_no_other_word(
    question: str, reference: str, output: str, wanted: str
) -> None:
    assert outcome(reference, output, question) == wanted
