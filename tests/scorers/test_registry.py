"""Every scorer module is listed and says what it is; a stranger's scorer works as ours do."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

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
    # `given` reads no text, so it prescribes no form.
    without = {name for name in SCORERS.builtin if not SCORERS.get(name).instruction}
    assert without == {"given"}


def test_every_scorer_can_say_again_what_it_read() -> None:
    # Equivalence feeds an extracted answer back in the form the scorer asks for.
    for name in SCORERS.builtin:
        scorer = SCORERS.get(name)
        if scorer.decides_equality:
            assert "7" in scorer.states.format("7")
