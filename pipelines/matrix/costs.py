"""What answers cost, as one matrix per measure, from outcomes or from responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.arrays import Bools, Floats, Ints
from routeyard.pipelines.matrix.dense import codes, dense
from routeyard.pipelines.matrix.row_blocks import sums_of


def costs_of(
    models: pa.Table,
    responses: pa.Table | None,
    told: Mapping[str, Floats] | None,
    query_ids: pa.Array,
    model_ids: pa.Array,
) -> dict[str, Floats]:
    """Cost matrices (queries, models) by measure: `usd`, `tokens`, `latency`, `params`.

    Args:
        told: what outcomes say of the first three; None takes them from `responses`.

    A pair's cost is that of one answer; NaN where it is unknown. A measure of which nothing
    is known is left out.
    """
    shape = (len(query_ids), len(model_ids))
    costs: dict[str, Floats] = {}
    if told is not None:
        costs |= told
    elif responses is not None and responses.num_rows:
        rows = codes(responses.column("query_id"), query_ids)
        columns = codes(responses.column("model_id"), model_ids)
        tokens = pc.add(responses.column("prompt_tokens"), responses.column("completion_tokens"))
        for name, values in (
            ("usd", responses.column("cost_usd")),
            ("tokens", tokens),
            ("latency", responses.column("latency_s")),
        ):
            costs[name] = _known(rows, columns, values, shape)
        # As outcomes keep it, so that staged tables and a release give the same figures.
        costs["latency"] = costs["latency"].astype(np.float32).astype(np.float64)
    at = codes(models.column("model_id"), model_ids)
    params = np.full(len(model_ids), np.nan)
    params[at] = models.column("params_b").cast(pa.float64()).to_numpy(zero_copy_only=False)
    costs["params"] = np.broadcast_to(params, shape)  # one row, seen n times
    return {name: cost for name, cost in costs.items() if priced(cost).any()}


def priced(cost: Floats) -> Bools:
    """(m,) whether anything is known of what a model costs."""
    return np.asarray(sums_of(lambda part: ~np.isnan(part), cost) > 0)


def unpriced(cost: Floats, models: Sequence[str]) -> tuple[str, ...]:
    """The models of which nothing is known."""
    return tuple(name for name, has in zip(models, priced(cost), strict=True) if not has)


def _known(rows: Ints, columns: Ints, values: pa.ChunkedArray, shape: tuple[int, int]) -> Floats:
    """Mean over the answers of each pair; NaN as soon as one of them is unknown."""
    found = dense(rows, columns, values, shape)
    unknown = values.is_null().to_numpy() & (rows >= 0) & (columns >= 0)
    found[rows[unknown], columns[unknown]] = np.nan
    return found
