"""What `metrics.yaml` declares of every metric."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from routeyard.pipelines.common.files import read_text
from routeyard.pipelines.common.registry import Registry

_PATH = Path(__file__).with_name("metrics.yaml")


@cache
def rows() -> dict[str, dict[str, Any]]:
    """Metric → its row; one without a `module` is computed with its family."""
    text: dict[str, dict[str, Any]] = read_text(_PATH.read_text(encoding="utf-8"), where=str(_PATH))
    return text


# Metrics by family, and the data they are computed from.
#
# Read `spec.py` (what a metric declares, in `metrics.yaml`, and is given), then `single.py`
# (metrics of one router).
# `evaluation_data.py` is what is the same for every router; `pipelines/evaluate/README.md`
# lists all metrics with direction, unit and source.

METRICS = Registry(
    kind="metric",
    listed="pipelines/evaluate/README.md",
    group="routeyard.metrics",
    builtin={
        name: f"{__name__}.{row['module']}:{name}_metric"
        if "module" in row
        else f"{__name__}.spec:{name}"
        for name, row in rows().items()
    },
)
