"""SuperGLUE: classes from free text, and the metrics of the leaderboard."""

from __future__ import annotations

import pytest

from routeyard.pipelines.scorers import SCORERS
from routeyard.pipelines.scorers.scorer import ScoringInput
from routeyard.pipelines.scorers.superglue import CLASSES, task_metrics


@pytest.mark.parametrize(
    ("task", "reference", "output", "outcome"),
    [
        ("boolq", "yes", "Answer: Yes.", "correct"),
        ("boolq", "True", "yes", "correct"),
        ("boolq", "no", "Answer: yes, no doubt", "incorrect"),  # opens with its class
        ("boolq", "yes", "Answer: maybe", "abstain"),
        ("rte", "not_entailment", "Answer: not_entailment", "correct"),
        ("rte", "entailment", "Answer: not entailment", "incorrect"),  # holds "entailment"
        ("rte", "entailment", "Answer: entailment", "correct"),
        ("cb", "neutral", "Answer: neutral", "correct"),
        ("cb", "contradiction", "Answer: entailment or contradiction", "abstain"),
        ("copa", "1", "Answer: 1", "correct"),
        ("copa", "2", "Answer: The tree fell", "correct"),
        ("wic", "no", "Answer: No", "correct"),
        ("wsc", "yes", "Answer: false", "incorrect"),
        ("multirc", "no", "Answer: no", "correct"),
    ],
)
def test_reads_the_class(task: str, reference: str, output: str, outcome: str) -> None:
    choices = ("It rained", "The tree fell") if task == "copa" else ()
    scorer = SCORERS.get(f"superglue_{task}")
    assert scorer.read(ScoringInput("", (reference,), choices), output).outcome == outcome


def test_every_task_has_a_scorer() -> None:
    for task in [*CLASSES, "record"]:
        assert SCORERS.get(f"superglue_{task}").name == f"superglue_{task}"


def test_record_scores_f1_and_is_correct_on_exact_match_only() -> None:
    asked = ScoringInput("", ("Barack Obama", "Obama"))
    scorer = SCORERS.get("superglue_record")
    assert scorer.read(asked, "Answer: Obama").outcome == "correct"
    partly = scorer.read(asked, "Answer: President Obama")
    assert partly.outcome == "incorrect"
    assert partly.score == pytest.approx(2 / 3)


def test_cb_macro_f1_and_multirc_by_hand() -> None:
    cb = [("", "entailment", "entailment"), ("", "entailment", "neutral"), ("", "neutral", None)]
    # F1 of entailment 2·1/(2+1), of neutral 0/(1+1).
    assert task_metrics("cb", cb) == pytest.approx({"accuracy": 100 / 3, "f1_macro": 100 / 3})
    multirc = [("q1", "yes", "yes"), ("q1", "no", "yes"), ("q2", "yes", "yes"), ("q2", "no", "no")]
    assert task_metrics("multirc", multirc) == pytest.approx({"f1a": 80.0, "exact_match": 50.0})
    with pytest.raises(ValueError, match="undefined"):
        task_metrics("rte", [])
