"""`routeyard arms`."""

from __future__ import annotations

from pathlib import Path

from routeyard.flows.cli.options import Resamples
from routeyard.flows.cli.results import Output


def command(release: Path, resamples: Resamples = 2_000) -> Output:
    """Print what more effort, longer answers or more samples gain, lose and cost.

    For each model whose pool entry declares axes: the score of each arm, the questions that only
    more gets right and those that flip back, and USD for each further right answer, with intervals.

    Example:

        routeyard arms yard/releases/efforts/1.0.0

    Args:
        release: A release whose pool has arms.
    """
    from routeyard.flows.traffic.arms import arms_report

    found = arms_report(release, resamples=resamples)
    return Output(found.data(), found.lines())
