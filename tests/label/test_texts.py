"""The audit doubts the text behind a stored score."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from routeyard.pipelines.audit.labels import Audit, Setting, audit, kind_of
from routeyard.pipelines.label.policies import decide
from routeyard.pipelines.label.rules import file_verdicts
from tests.support.label_tables import qid, queries, responses


def audited(asked: object, texts: object) -> Audit:
    verdicts = file_verdicts(asked, texts)  # type: ignore[arg-type]
    return audit(asked, texts, verdicts, decide(asked, texts, verdicts))  # type: ignore[arg-type]


#: A task whose answers are long, with a rule that read nothing in the text.
LONG = Setting(typical=500.0, ends=0.98, vocabulary=frozenset({"18", "paris"}), unread=True)
#: A task of short answers that only their source has graded.
BRIEF = Setting(typical=8.0, ends=0.5, vocabulary=frozenset({"paris", "new york", "none", "a"}))


@pytest.mark.parametrize("at", [LONG, BRIEF], ids=["long", "brief"])
@pytest.mark.parametrize(
    "text",
    ["", "  ", "I do", "Okay,", "The", "Let's", "Sure, here is the", "I am", "To solve this,",
     "Bien sûr,", "Um die", "好的，", "はい、", "Конечно,", "네,"],
)  # fmt: skip
def test_a_text_that_says_nothing_is_a_stub(text: str, at: Setting) -> None:
    assert kind_of(text, at) == "stub"


@pytest.mark.parametrize(
    # short answers, right or wrong
    "text",
    ["B", "(C)", "42", "$5", "Paris", "New York", "A", "The answer is (A).", "So I choose D",
     "It is Paris", "The answer: yes", "the answer is rome", "None", "Lisbon"],
)  # fmt: skip
def test_a_short_answer_is_none(text: str) -> None:
    assert kind_of(text, BRIEF) is None


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't assist with that request.",
        "Lo siento, pero no puedo ayudar con esa solicitud.",
        "Es tut mir leid, aber ich kann bei dieser Anfrage nicht helfen.",
        "К сожалению, я не могу помочь с этим запросом.",
        "抱歉，我无法回答这个问题。",
        "申し訳ありませんが、そのご要望にはお応えできません。",
        "죄송하지만 해당 요청은 도와드릴 수 없습니다.",
        "عذراً، لا أستطيع المساعدة في هذا الطلب.",
        "मुझे खेद है, मैं इस अनुरोध में मदद नहीं कर सकता।",
    ],
)
def test_refusals_in_many_languages(text: str) -> None:
    assert kind_of(text, LONG) == kind_of(text, BRIEF) == "refusal"


def test_an_answer_that_speaks_of_what_cannot_be_done_is_no_refusal() -> None:
    said = "She cannot buy more than 4 bags, and no help is provided, so the answer is 4."
    assert kind_of(said, replace(LONG, unread=False)) is None


@pytest.mark.parametrize(
    "text",
    [
        "[ERROR] timeout", "null", "<think>", "<think>\nOkay, so I need to find the number of",
        "Error: 429 Too Many Requests", "Request timed out.", "502 Bad Gateway", "undefined",
        '{"error": {"message": "Rate limit reached", "type": "requests"}}', "[TIMEOUT]",
        "openai.error.APIConnectionError: Error communicating with OpenAI",
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
        'Traceback (most recent call last):\n  File "run.py", line 3\nKeyError: 0',
    ],
)  # fmt: skip
def test_messages_of_a_harness(text: str) -> None:
    assert kind_of(text, LONG) == kind_of(text, BRIEF) == "harness_error"


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("First we add the apples, then we take away the pears, which leaves him with exac", True),
        ('{"reasoning": "She has 3 apples and buys 4 more. Then she eats 2 of them.", "an', True),
        ("```json\n{\"reasoning\": \"She has 3 apples and buys 4 more. Then she eats.\"", True),
        ("The total is the sum of the parts, so we compute 3 + 4 = 7 and then \\boxed{7", True),
        ("First we add the apples, then we take away the pears, which leaves him with 5.", False),
        ("首先我们把苹果加起来，然后减去梨的数量，再把剩下的苹果分给三个孩子，每个孩子得到五个苹果，"
         "一共十五个，所以最后的结果就是十五个苹果。", False),
        ("首先我们把苹果加起来，然后减去梨的数量，再把剩下的苹果分给三个孩子，每个孩子得到五个苹果，"
         "一共十五个，所以最后的结果就是十五个，", True),
    ],
)  # fmt: skip
def test_a_text_that_stops_in_mid_sentence_is_cut_off(text: str, cut: bool) -> None:
    assert kind_of(text, LONG) == ("truncated" if cut else None)
    # Trap: a model that never ends its sentences is not cut off; an open bracket still is.
    habit = kind_of(text, replace(LONG, ends=0.1, unread=None))
    assert habit == ("truncated" if cut and text[-1] != "c" else None)


@pytest.mark.parametrize(
    ("end", "cut"),
    [
        ("\n\nAnswer: Wednesday", False),
        ("\n\n**Answer:** Wednesday", False),
        ("\n#### 12", False),
        ("\nRéponse : mercredi", False),
        ("\nAnswer: Wednesday, which is the day that follows upon Tuesday and goes before", True),
        ("\n\nAnswer", True),
        (" so that the answer is wednes", True),
    ],
)
def test_an_answer_line_needs_no_full_stop(end: str, cut: bool) -> None:
    """Trap: "Answer: Wednesday" at the end was named as cut off, where others write a stop."""
    text = "First I look at what is asked, then at the days between. The rest follows." + end
    setting = replace(LONG, unread=False, right=False)
    assert kind_of(text, setting) == ("truncated" if cut else None)


def test_the_opening_of_other_answers_is_a_stub_in_any_language() -> None:
    """No list holds "Selvfølgelig": it opens longer answers to other questions."""
    asked = queries(["noun"] * 12, scorer="em")
    long = "Selvfølgelig er det riktig at dette er en ganske lang tekst om tema nummer "
    texts = ["Selvfølgelig"] + [f"{long}{i}." for i in range(11)]
    found = audited(asked, responses({"m": texts}, m=[0.0] * 12))
    assert {(row["text"], row["kind"]) for row in found.tables["texts"].to_pylist()} == {
        ("Selvfølgelig", "stub")
    }


@pytest.mark.data
def test_injected_faults_of_honest_answers_are_named_by_kind(data: Path) -> None:
    """Every tenth honest GSM8K answer of three models replaced by one that is none."""
    import pyarrow.parquet as pq

    folder = data / "zeroeval_gsm"
    gold = pq.read_table(folder / "queries.parquet").to_pylist()[:400]
    references = [row["gold_answer"].removeprefix("# ") for row in gold]
    at = {row["query_id"]: i for i, row in enumerate(gold)}
    texts: dict[str, list[str | None]] = {}
    for row in pq.read_table(
        folder / "responses.parquet", filters=[("model", "in", ["gpt-4o-2024-05-13",
        "Qwen2-7B-Instruct", "claude-3-haiku-20240307"])]).to_pylist():  # fmt: skip
        if row["query_id"] in at:
            told = texts.setdefault(row["model"], [None] * len(gold))
            told[at[row["query_id"]]] = row["output"]
    bad = {
        "stub": ["I do", "The", "Okay,", "To solve this"],
        "refusal": ["I'm sorry, but I can't help with that.", "抱歉，我无法回答这个问题。"],
        "harness_error": ["[ERROR] timeout", "null", "<think>"],
        "truncated": [""],
    }
    expected: dict[tuple[str, str], str] = {}
    for model, told in texts.items():
        for i in range(0, len(told), 10):
            kind = list(bad)[i // 10 % 4]
            text = told[i] or ""
            told[i] = bad[kind][i // 40 % len(bad[kind])] or text[: len(text) * 2 // 3]
            expected[model, qid(i)] = kind
    assert len(texts) == 3
    found = audited(queries(references), responses(texts))
    named = {(r["model_id"], r["query_id"]): r["kind"] for r in found.tables["texts"].to_pylist()}
    for kind in bad:
        of = [key for key, name in expected.items() if name == kind]
        assert sum(named.get(key) == kind for key in of) >= 0.95 * len(of), kind
    honest = 3 * len(gold) - len(expected)
    assert len(named.keys() - expected.keys()) <= 0.01 * honest
    kinds = {one.kind for one in found.findings}
    assert {"stub_answers", "refusals", "harness_errors", "truncated_answers"} <= kinds


def test_stubs_scored_as_wrong_are_found_with_what_they_cost() -> None:
    asked = queries([f"word{i}" for i in range(30)], scorer="em")
    right: list[str | None] = [f"word{i}" for i in range(30)]
    stubbed = ["I do" if i % 3 == 0 else text for i, text in enumerate(right)]
    scores = [0.0 if i % 3 == 0 else 1.0 for i in range(30)]
    found = audited(asked, responses({"m": stubbed, "fine": right}, m=scores, fine=[1.0] * 30))
    stubs = [one for one in found.findings if "stub" in one.kind]
    assert {(one.kind, one.about) for one in stubs} == {("stub_answers", "m")}
    assert "10 of 30" in stubs[0].says
    assert "66.7% as stored, 100.0% without its wrong" in stubs[0].says
    rows = {row["model_id"]: row for row in found.tables["readable"].to_pylist()}
    assert rows["m"]["accuracy"] == pytest.approx(2 / 3)
    assert rows["m"]["accuracy_readable"] == 1
    assert rows["fine"]["stubs"] == 0


def test_a_short_right_answer_is_not_taken_away_as_a_stub() -> None:
    # the reference itself reads like an opening
    asked = queries(["I do"] * 6, scorer="em")
    found = audited(asked, responses({"m": ["I do"] * 6}, m=[1.0] * 6))
    assert not [one for one in found.findings if one.kind == "stub_answers"]


def test_a_constant_text_over_many_questions_is_found() -> None:
    asked = queries([f"word{i}" for i in range(25)], scorer="em")
    same = "A text that has got nothing to do with it stands under all of the questions."
    texts = {"m": [same] * 25, "s": ["Okay,"] * 25}
    found = audited(asked, responses(texts, m=[0.0] * 25, s=[0.0] * 25))
    named = {(one.kind, one.about) for one in found.findings}
    assert {("constant_text", "m"), ("stub_answers", "s")} <= named


def test_one_text_scored_both_ways_is_found() -> None:
    asked = queries(["alpha", "beta"], scorer="em")
    texts = responses({"a": ["alpha", "x"], "b": ["alpha", "y"]}, a=[1.0, 0.0], b=[0.0, 0.0])
    found = audited(asked, texts)
    assert ("same_text_scored_both_ways", qid(0)) in {(o.kind, o.about) for o in found.findings}
    assert len([o for o in found.findings if "both_ways" in o.kind]) == 1


@pytest.mark.data
def test_omnisbench_stubs_are_the_empty_answers(data: Path) -> None:
    import pyarrow.parquet as pq

    items = pq.read_table(data / "omnisbench" / "items.parquet").to_pylist()
    empty = [one for one in items if not (one["response_text"] or "").strip()]
    assert len(empty) == 20
    at = Setting(typical=300.0)
    assert all(kind_of(one["response_text"] or "", at) == "stub" for one in empty)
    others = [one for one in items if one["passed"] and kind_of(one["response_text"], at) == "stub"]
    assert others == []


def test_an_answer_by_letter_stands_under_many_questions_and_is_no_finding() -> None:
    asked = queries(["A", "B", "C", "D"] * 20, scorer="em")
    texts = ["The answer is (A)."] * 80
    found = audited(asked, responses({"m": texts}, m=[1.0, 0.0, 0.0, 0.0] * 20))
    kinds = {one.kind for one in found.findings}
    assert not [kind for kind in kinds if "stub" in kind or "constant" in kind]
    refusing = audited(
        asked,
        responses(
            {"m": ["A text that has nothing to do with anything is below all questions."] * 80},
            m=[0.0] * 80,
        ),
    )
    assert "constant_text" in {one.kind for one in refusing.findings}
