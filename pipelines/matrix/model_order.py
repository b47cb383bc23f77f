"""The order in which the models of a release are read: best on its training questions first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from routeyard.pipelines.arrays import Floats, Ints
from routeyard.pipelines.matrix.core import complete_measure
from routeyard.pipelines.matrix.memmap import blocks, take_rows
from routeyard.pipelines.matrix.ranking import mean_costs, ranked


def not_test(splits: Mapping[str, NDArray[np.str_]], n: int) -> Ints:
    """Rows that no scheme tests on; all rows without a scheme."""
    tested = np.zeros(n, dtype=bool)
    for split in splits.values():
        tested |= split == "test"
    return np.flatnonzero(~tested) if not tested.all() else np.arange(n)


def best_first(
    told: Mapping[str, Any],
    costs: Mapping[str, Floats],
    model_ids: pa.Array,
    rows: Ints,
) -> tuple[dict[str, Floats], pa.Array]:
    """(costs, model ids) with models `ranked` by these rows; matrices are permuted in place.

    Routers and rules that take the first of equals then take the better on train, the
    cheaper or a drawn one: no result depends on what models are called.
    """
    # The one row of a measure that is the same for every question stays one.
    known = {
        name: take_rows(cost, rows) if cost.strides[0] else cost[:1] for name, cost in costs.items()
    }
    measure = complete_measure(known)
    price = None if measure is None else mean_costs(known[measure])
    order = ranked(take_rows(told["labels"], rows), price)
    if not np.array_equal(order, np.arange(len(order))):
        matrices = [told["labels"], *(() if told["correct"] is None else (told["correct"],))]
        matrices += [cost for cost in costs.values() if cost.strides[0]]
        for matrix in {id(one): one for one in matrices}.values():
            for part in blocks(len(matrix)):
                matrix[part] = matrix[part][:, order]
    same = {k: np.broadcast_to(v[:1, order], v.shape) for k, v in costs.items() if not v.strides[0]}
    return {**costs, **same}, model_ids.take(pa.array(order))
