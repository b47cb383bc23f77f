"""Every scorer module is listed, and every scorer has an instruction."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from pipelines.instructions import INSTRUCTIONS, with_instruction

import pipelines.scorers
from pipelines.scorers import SCORERS
from pipelines.scorers.scorer import Scorer


def test_every_scorer_is_listed_under_its_name() -> None:
    listed = {target.partition(":")[0]: name for name, target in SCORERS.builtin.items()}
    for path in Path(str(pipelines.scorers.__file__)).parent.glob("*.py"):
        if any(line.startswith("SCORER = ") for line in path.read_text().splitlines()):
            module = import_module(f"pipelines.scorers.{path.stem}")
            assert module.__name__ in listed, f"{path.name} defines a scorer nobody can name"
    for name in SCORERS.builtin:
        scorer = SCORERS.get(name)
        assert isinstance(scorer, Scorer)
        assert scorer.name == name


def test_every_scorer_tells_the_model_its_format() -> None:
    assert set(SCORERS.builtin) <= set(INSTRUCTIONS)
    assert with_instruction("Why?", "given") == "Why?"
    assert with_instruction("Why?", "mcq").startswith("Why?\n\n")
