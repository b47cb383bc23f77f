"""Every scorer module is listed and says what it is; a stranger's scorer works as ours do."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import routeyard.pipelines.label.scorers
from routeyard.pipelines.label.scorers import SCORERS
from routeyard.pipelines.label.scorers.bartscore import THRESHOLD
from routeyard.pipelines.label.scorers.scorer import Scorer, ScoringInput
from routeyard.schemas import QUERIES
from routeyard.schemas.recipe.reference import json_schema
from tests.scorers.said import UNTRIED, readings


def test_every_scorer_is_listed_under_its_name() -> None:
    listed = {target.partition(":")[0]: name for name, target in SCORERS.builtin.items()}
    for path in Path(str(routeyard.pipelines.label.scorers.__file__)).parent.glob("*.py"):
        if any(line.startswith("SCORER = ") for line in path.read_text().splitlines()):
            module = import_module(f"routeyard.pipelines.label.scorers.{path.stem}")
            assert module.__name__ in listed, f"{path.name} defines a scorer nobody can name"
    for name in SCORERS.builtin:
        scorer = SCORERS.get(name)
        assert isinstance(scorer, Scorer)
        assert scorer.name == name


def test_every_scorer_tells_the_model_its_format() -> None:
    # `given` reads no text, so it prescribes no form.
    without = {name for name in SCORERS.builtin if not SCORERS.get(name).instruction}
    assert without == {"given"}


def test_every_scorer_can_say_again_what_it_read() -> None:
    # Equivalence feeds an extracted answer back in the form the scorer asks for.
    for name in SCORERS.builtin:
        scorer = SCORERS.get(name)
        if scorer.decides_equality:
            assert "7" in scorer.states.format("7")


#: Scorers whose score is a grade told beside the outcome, and what decides instead.
BESIDE = {"superglue_record": "exact match; the grade is ReCoRD's F1"}


@pytest.mark.parametrize("name", sorted(SCORERS.builtin))
def test_a_graded_scorer_states_the_threshold_that_its_outcome_follows(name: str) -> None:
    # Trap: several samples are decided by their mean score, and without a threshold by outcomes;
    # a scorer that grades and states none would be counted otherwise than it grades.
    if name in UNTRIED:
        assert SCORERS.get(name).threshold is (None if name == "code" else THRESHOLD)
        return
    scorer = SCORERS.get(name)
    read = list(readings(scorer))
    for reading in read:
        right = reading.outcome == "correct"
        if scorer.threshold is not None:
            assert right == (reading.score >= scorer.threshold)
        elif name not in BESIDE:
            assert reading.score == float(right), (
                f"{name} grades: state its `threshold` (scorer.py), or list it in BESIDE here "
                "with what decides"
            )
    assert read, (
        f"{name} reads none of the answers that all scorers are tried on: add a reference and "
        "answers that it reads to SAID in tests/scorers/said.py"
    )


@pytest.mark.parametrize(
    ("scorer", "references", "said"),
    [
        ("em", ("insult", "toxic"), "Answer: toxic"),
        ("numeric", ("3", "4"), "Answer: 4"),
        ("math", ("3", "x^2"), "\\boxed{x^2}"),
        ("literal", ("[1]", "[2]"), "[2]"),
        ("f1", ("insult", "toxic"), "toxic"),
        ("rouge_l", ("insult", "toxic"), "toxic"),
        ("meteor", ("insult", "toxic"), "toxic"),
        ("mcq", ("A", "B"), "Answer: B"),
        ("auto", ("insult", "toxic"), "Answer: toxic"),
        ("superglue_boolq", ("yes", "no"), "Answer: no"),
        ("superglue_record", ("insult", "toxic"), "Answer: toxic"),
    ],
)
def test_several_references_are_alternatives(
    scorer: str, references: tuple[str, ...], said: str
) -> None:
    asked = ScoringInput("Which?", references, ("one", "two") if scorer == "mcq" else ())
    assert SCORERS.get(scorer).read(asked, said).outcome == "correct"


def test_that_references_are_alternatives_is_said_where_they_are_mapped() -> None:
    # Trap: a set of labels mapped as references is right as soon as one of them is named.
    fields = json_schema()["$defs"]["Fields"]["properties"]
    assert "any one is right" in fields["references"]["description"]
    column = next(one for one in QUERIES.columns if one.name == "references")
    assert "any one is right" in column.full_description
