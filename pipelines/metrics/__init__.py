"""One file per metric or family of metrics, and the data they are computed from.

Read `spec.py` (what a metric declares, in `listed/metrics.yaml`, and is given), then `rci.py`
(one metric).
`evaluation_data.py` is what is the same for every router; `pipelines/evaluate/README.md`
lists all metrics with direction, unit and source.
"""

from __future__ import annotations

from routeyard.pipelines.metrics.listed import rows
from routeyard.pipelines.registry import Registry

METRICS = Registry(
    kind="metric",
    group="routeyard.metrics",
    builtin={
        name: f"{__name__}.{row['module']}:{name}_metric"
        if "module" in row
        else f"{__name__}.families:{name}"
        for name, row in rows().items()
    },
)
