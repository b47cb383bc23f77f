"""The hand-computed examples in the docstrings hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import routeyard.pipelines.common
import routeyard.pipelines.evaluate

MODULES = [
    module.name
    for package in (
        routeyard.pipelines.evaluate,
        routeyard.pipelines.common,
    )
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]

#: Families of metrics whose definitions come with an example worked out by hand.
EXEMPLARY = (
    "audc", "peak_accuracy", "qnc", "lpm", "hcr", "mpm", "cpt", "apgr", "auroc", "realised",
    "hard_subset", "oracle_gap", "exchange", "selection_entropy", "outcomes", "mix_frontier",
    "best_single", "specialist_scores", "resolvable_difference", "dominated", "holm", "mcnemar",
    "p_value", "cost_penalised", "within_budget", "aiq", "aiq_as_written", "arena_score",
    "rci_column", "nauc", "macro", "perf_gain", "cost_save", "pareto_dist", "entropies",
    "bce_cells", "brier_cells", "ece", "trr", "u_token", "decision_cost", "as_published",
    "chance_corrected_oracle", "questions_needed",
)  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_examples_hold(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0


def test_every_metric_has_an_example() -> None:
    shown = set()
    for module in MODULES:
        found = importlib.import_module(module)
        shown |= {name for name in vars(found) if ">>>" in (getattr(found, name).__doc__ or "")}
    assert set(EXEMPLARY) <= shown
