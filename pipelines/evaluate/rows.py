"""What an evaluation is made of: metric, curve, comparison, profile and OOD rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.metrics.bootstrap import interval

Floats = NDArray[np.float64]

METRICS_SCHEMA = pa.schema(
    [
        ("router", pa.string()),
        ("metric", pa.string()),
        ("split", pa.string()),
        ("value", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("reason", pa.string()),
        ("n", pa.int64()),
    ]
)
CURVES_SCHEMA = pa.schema(
    [
        ("router", pa.string()),
        ("curve", pa.string()),
        ("measure", pa.string()),
        ("split", pa.string()),
        ("point", pa.int32()),
        ("setting", pa.float64()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
    ]
)
COMPARISONS_SCHEMA = pa.schema(
    [
        ("metric", pa.string()),
        ("split", pa.string()),
        ("first", pa.string()),
        ("second", pa.string()),
        ("difference", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("p", pa.float64()),
        ("p_adjusted", pa.float64()),
        ("significant", pa.bool_()),
        ("n10", pa.int64()),
        ("n01", pa.int64()),
    ]
)
PROFILES_SCHEMA = pa.schema(
    [
        ("router", pa.string()),
        ("split", pa.string()),
        ("model_id", pa.string()),
        ("share", pa.float64()),
        # The same on hard questions (plateau study, section 5.1); null where none is.
        ("hard_share", pa.float64()),
    ]
)

EXCHANGES_SCHEMA = pa.schema(
    [
        ("first", pa.string()),
        ("second", pa.string()),
        ("split", pa.string()),
        ("disagreement", pa.float64()),
        ("won", pa.float64()),
        ("lost", pa.float64()),
        ("signed", pa.float64()),
        ("unsigned", pa.float64()),
        ("given_disagreement", pa.float64()),
        ("signed_given_disagreement", pa.float64()),
    ]
)
OOD_SCHEMA = pa.schema(
    [
        ("router", pa.string()),
        ("group", pa.string()),
        ("n", pa.int64()),
        ("id_accuracy", pa.float64()),
        ("ood_accuracy", pa.float64()),
        ("change", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("agreement", pa.float64()),
    ]
)


@dataclass(frozen=True)
class MetricRow:
    """One row of metrics.parquet; a null value comes with a reason.

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


def table(rows: Iterable[Any], schema: pa.Schema) -> pa.Table:
    """Arrow table from dataclass rows or dictionaries."""
    plain = [row if isinstance(row, dict) else asdict(row) for row in rows]
    return pa.Table.from_pylist(plain, schema=schema)


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
