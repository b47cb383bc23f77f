"""The answer that word scorers compare: the marked one, the whole text, or nothing at all."""

from __future__ import annotations

from routeyard.pipelines.label.scorers import em
from routeyard.pipelines.label.scorers import graded as rouge_l
from routeyard.pipelines.label.scorers.reading import whole_answer
from routeyard.pipelines.label.scorers.scorer import ScoringInput


def test_to_answer_nothing_is_right_where_the_source_means_it() -> None:
    asked = ScoringInput("", ("",), metadata={"empty_reference": True})
    reading = em.read(asked, " \n")
    assert (reading.outcome, reading.score, reading.span) == ("correct", 1.0, (0, 0))


def test_two_marked_answers_contradict_each_other_unless_they_are_one() -> None:
    asked = ScoringInput("", ("Paris",))
    twice = em.read(asked, "Answer: Lyon\nAnswer: Paris")
    assert (twice.outcome, twice.conflict) == ("correct", True)
    assert "several answers" in twice.reason
    assert not em.read(asked, "Answer: Paris\nAnswer: Paris.").conflict


def test_a_long_text_is_not_its_statement() -> None:
    # `f1` would compare "a small dog"; a summary is the whole of it.
    text = "the answer is a small dog ran home"
    assert rouge_l.ROUGE_L_SCORER.read(ScoringInput("", (text,)), text).score == 1.0


def test_of_an_empty_text_nothing_is_compared() -> None:
    assert rouge_l.ROUGE_L_SCORER.read(ScoringInput("", ("a dog",)), " \n").outcome == "abstain"
    assert whole_answer("") is None


def test_a_whole_text_is_never_contested() -> None:
    assert whole_answer("  a dog\n") == ("a dog", (2, 7), False)
