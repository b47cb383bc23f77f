"""SuperGLUE: classes from free text, and the entity of ReCoRD."""

from __future__ import annotations

import pytest

from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.scorer import ScoringInput
from routeyard.pipelines.label.scorers.superglue import CLASSES


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
