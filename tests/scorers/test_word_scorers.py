"""Traps of the scorers that compare words: em, f1, rouge_l, meteor."""

from __future__ import annotations

import pytest

from routeyard.pipelines.label.scorers import em, meteor
from routeyard.pipelines.label.scorers import graded as f1
from routeyard.pipelines.label.scorers import graded as rouge_l
from routeyard.pipelines.label.scorers.graded import all_tokens, normalise, tokens
from routeyard.pipelines.label.scorers.scorer import ScoringInput


@pytest.mark.parametrize(
    ("references", "output", "outcome"),
    [
        (("Paris",), "Answer: the Paris.", "correct"),
        (("Paris", "City of Light"), "city of light", "correct"),
        (("Paris",), "Answer: Lyon\nNo, Paris.", "incorrect"),  # the marked answer counts
        (("√2+√3",), "Answer: √2·√3", "incorrect"),  # stripped punctuation made them equal
        (("√2 + √3",), "Answer: √2+√3", "correct"),
        (("x-1",), "Answer: x+1", "incorrect"),
        (("-5",), "Answer: 5", "incorrect"),
        (("3.5",), "Answer: 35", "incorrect"),
        (("1,000",), "Answer: 1000", "correct"),
        (("a",), "Answer: a", "correct"),  # nothing but an article
        (("well-known",), "Answer: well known", "correct"),
        (("C++",), "Answer: C", "incorrect"),
        (("don't",), "Answer: don’t", "correct"),
        (("北京",), "答案：北京。", "correct"),
        (("Paris",), "", "abstain"),
        (("Paris",), "   ", "abstain"),
    ],
)
def test_exact_match(references: tuple[str, ...], output: str, outcome: str) -> None:
    assert em.read(ScoringInput("", references), output).outcome == outcome


def test_a_reference_without_words_is_an_error_not_a_match() -> None:
    assert em.read(ScoringInput("", ("...",)), "Answer: !!!").outcome == "error"
    assert f1.F1_SCORER.read(ScoringInput("", ("...",)), "Answer: !!!").outcome == "error"


def test_cjk_signs_are_words() -> None:
    # Without this, a Chinese answer is one word and F1 is 0 or 1.
    assert tokens("东京塔") == ["东", "京", "塔"]
    assert f1.F1_SCORER.read(ScoringInput("", ("东京",)), "Answer: 东京塔").score == pytest.approx(
        0.8
    )


def test_f1_takes_the_best_reference() -> None:
    reading = f1.F1_SCORER.read(ScoringInput("", ("a blue whale", "whale")), "Answer: The whale")
    assert reading.score == 1.0
    assert reading.outcome == "correct"
    assert f1.F1_SCORER.read(ScoringInput("", ("cat",)), "Answer: dog").score == 0.0


def test_normal_form_is_stable() -> None:
    for text in ["The “quick” fox—jumps!", "½ cup", "e = mc²", "[[x]]", "a the an"]:
        assert normalise(normalise(text)) == normalise(text)


def test_rouge_l_is_the_longest_common_subsequence() -> None:
    reference = all_tokens("police killed the gunman")
    # Lin 2004, section 3.1: S2 shares "police the gunman", S3 only "the gunman".
    assert rouge_l.rouge_l(all_tokens("police kill the gunman"), reference) == pytest.approx(0.75)
    assert rouge_l.rouge_l(all_tokens("the gunman kill police"), reference) == pytest.approx(0.5)
    assert rouge_l.rouge_l([], reference) == 0.0


def test_rouge_l_agrees_with_rouge_score() -> None:
    scorer = pytest.importorskip("rouge_score.rouge_scorer")
    for one, other in [("a b c d e f", "f a c b d"), ("x y", "z"), ("the cat sat", "a cat sat up")]:
        theirs = scorer.RougeScorer(["rougeL"]).score(one, other)["rougeL"].fmeasure
        assert rouge_l.rouge_l(other.split(), one.split()) == pytest.approx(theirs)


def test_meteor_matches_stems_and_counts_chunks() -> None:
    same = all_tokens("the cats sat")
    assert meteor.meteor(same, same) == pytest.approx(1 - 0.5 / 27)  # one chunk of three
    assert meteor.meteor(all_tokens("the cat sat"), same) == pytest.approx(1 - 0.5 / 27)
    assert meteor.meteor(all_tokens("sat cats the"), same) == pytest.approx(0.5)  # three chunks
    assert meteor.meteor(["dog"], same) == 0.0


def test_meteor_synonyms_come_from_wordnet_or_the_version_says_not() -> None:
    score = meteor.meteor(["automobile"], ["car"])
    if meteor.SCORER.version.endswith("wordnet3.1"):
        assert score == 0.5  # one word, one chunk
    else:
        assert meteor.SCORER.version == "8+stem"
        assert score == 0.0


def test_whole_texts_are_compared_without_the_run_on_question() -> None:
    asked = ScoringInput("", ("a small dog ran",))
    plain = rouge_l.ROUGE_L_SCORER.read(asked, "a small dog ran")
    assert (
        rouge_l.ROUGE_L_SCORER.read(asked, "a small dog ran\n\nQuestion: and the cat?").score
        == plain.score
    )
    assert plain.score == 1.0
