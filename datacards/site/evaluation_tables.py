"""One evaluation of routers as pages are given it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class EvaluationTables:
    """One evaluation of routers, as its files have it.

    Attributes:
        metrics, curves, profiles, comparisons, ood: Its tables; all but the first may be missing.
        ranking: router, value, best_place, worst_place.
        facts: What was done, in the words of `routeyard.pipelines.evaluate`.
    """

    title: str
    metrics: pa.Table
    curves: pa.Table | None = None
    profiles: pa.Table | None = None
    comparisons: pa.Table | None = None
    ood: pa.Table | None = None
    ranking: Sequence[Mapping[str, Any]] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
