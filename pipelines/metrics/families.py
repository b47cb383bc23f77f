"""Metrics that `evaluate` computes together with their family, as `listed/metrics.yaml` has them.

`pipelines/evaluate` computes their values: `router_result` (at any price), `sweep` (over cost),
`pairs` (between two models), `held_out` (out of distribution), `run.fitted` (over seeds).
"""

from __future__ import annotations

from functools import cache

from routeyard.pipelines.metrics.listed import rows
from routeyard.pipelines.metrics.spec import MetricSpec, spec_of


@cache
def __getattr__(name: str) -> MetricSpec:
    if name.startswith("_") or name not in rows():
        raise AttributeError(f"metrics.yaml declares no metric {name!r}")
    return spec_of(name, per="family")
