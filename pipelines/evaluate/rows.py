"""What an evaluation is made of: metric, curve, comparison, profile and OOD rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.arrays import Floats
from routeyard.pipelines.metrics.bootstrap import interval
from routeyard.schemas.intervals import widened, wilson
from routeyard.schemas.tables import RESULTS


@dataclass(frozen=True)
class MetricRow:
    """One row of metrics.parquet; a null value comes with a reason, an AUROC with its failures.

    `n` counts the questions behind the value: where labels are missing, rows that compare with
    a single model, or are of one, are over the questions that it has a label for.
    """

    router: str
    metric: str
    split: str
    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    n: int | None = None


def counted(rows: Iterable[MetricRow], n: int) -> list[MetricRow]:
    """The rows, those that say nothing else as over n questions."""
    return [row if row.n is not None or row.value is None else replace(row, n=n) for row in rows]


def metric(
    router: str,
    name: str,
    split: str,
    value: float | None,
    replicates: Floats | None = None,
    reason: str = "undefined here",
    n: int | None = None,
) -> MetricRow:
    """Row from a value and its replicates; NaN becomes null with the reason."""
    if value is None or math.isnan(value):
        return MetricRow(router, name, split, None, reason=reason)
    low, high = (math.nan, math.nan) if replicates is None else interval(replicates, value=value)
    return MetricRow(
        router,
        name,
        split,
        float(value),
        None if math.isnan(low) else low,
        None if math.isnan(high) else high,
        n=n,
    )


def column_metric(
    router: str, name: str, split: str, column: Floats, replicates: Floats, reason: str
) -> MetricRow:
    """Row of the mean of a column over the questions where it is known; `n` counts them.

    Drawing again from answers that are all right, or all wrong, gives the same share each time:
    such an accuracy has Wilson's interval, since five of five questions prove little. Missing
    and undecided labels widen the interval of an accuracy (`widened`): they may all be wrong, or
    all right.
    """
    known = ~np.isnan(column)
    value = float(np.nanmean(column)) if known.any() else math.nan
    row = metric(router, name, split, value, replicates, reason, n := int(known.sum()))
    if name != "accuracy" or row.value is None:
        return row
    low, high = wilson(value * n, n)[1:] if value in (0.0, 1.0) else (row.low, row.high)
    if low is None or high is None:
        return row
    low, high = widened(low, high, n, len(column))
    return replace(row, low=low, high=high)


def table(rows: Iterable[Any], name: str) -> pa.Table:
    """A table of `RESULTS`, by its name, from dataclass rows or dictionaries."""
    plain = [row if isinstance(row, dict) else asdict(row) for row in rows]
    return pa.Table.from_pylist(plain, schema=RESULTS[name])


def curve_rows(
    router: str,
    curve: str,
    measure: str | None,
    split: str,
    setting: Floats,
    x: Floats,
    y: Floats,
    replicates: Floats | None,
) -> list[dict[str, Any]]:
    """Rows of one curve; the band is the 95 % interval of y at each point."""
    if replicates is None:
        low, high = np.full(len(y), np.nan), np.full(len(y), np.nan)
    else:
        low, high = np.quantile(replicates, [0.025, 0.975], axis=0)
    return [
        {
            "router": router,
            "curve": curve,
            "measure": measure,
            "split": split,
            "point": k,
            "setting": float(setting[k]),
            "x": float(x[k]),
            "y": float(y[k]),
            "low": None if math.isnan(low[k]) else float(low[k]),
            "high": None if math.isnan(high[k]) else float(high[k]),
        }
        for k in range(len(y))
    ]
