"""Metrics that `evaluate` computes together with their family, as `families.yaml` declares them.

`pipelines/evaluate` computes their values: `router_result` (at any price), `sweep` (over cost),
`pairs` (between two models), `held_out` (out of distribution), `run.fitted` (over seeds).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from routeyard.pipelines.io.plain_yaml import read_text
from routeyard.pipelines.metrics.spec import MetricSpec


@cache
def _declared() -> dict[str, MetricSpec]:
    path = Path(__file__).with_suffix(".yaml")
    rows = read_text(path.read_text(encoding="utf-8"), where=str(path))
    return {
        name: MetricSpec(name, per="family", **{**row, "needs": tuple(row.get("needs", ()))})
        for name, row in rows.items()
    }


def __getattr__(name: str) -> MetricSpec:
    if name.startswith("_") or name not in _declared():
        raise AttributeError(f"families.yaml declares no metric {name!r}")
    return _declared()[name]
