"""Triple-perspective evaluation (RouterXBench) and ProbeDirichlet: signals and hidden states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from routeyard.papers.paper import read_paper
from routeyard.pipelines.evaluate.studies.study import declared_in

PAPER = read_paper(Path(__file__).parent)


def __getattr__(name: str) -> Any:
    """The study of that name, as `studies.yaml` declares it."""
    return declared_in(__name__, name)
