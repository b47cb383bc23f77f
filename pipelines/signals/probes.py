"""Probe prompts: what every model of a pool is asked to be described by."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.errors import BadInput


def select_probes(
    queries: pa.Table, splits: pa.Table, *, n: int = 192, seed: int = 0, scheme: str | None = None
) -> pa.Table:
    """A seeded draw of `n` validation queries, ordered by query_id.

    A query that any scheme trains on is left out: a descriptor made from
    training questions would leak them into whatever is trained with it. With
    fewer than `n` at hand, all of them are taken.

    Args:
        scheme: Split scheme whose validation part is drawn from; None for any.

    Raises:
        BadInput: no validation query is left.
    """
    part = splits if scheme is None else splits.filter(pc.equal(splits["scheme"], scheme))
    of = {
        name: set(table.filter(pc.equal(table["split"], name)).column("query_id").to_pylist())
        for name, table in (("validation", part), ("train", splits))
    }
    known = set(queries.column("query_id").to_pylist())
    candidates = sorted((of["validation"] - of["train"]) & known)
    if not candidates:
        raise BadInput(
            "no validation query is left to probe with",
            where=f"splits, scheme {scheme or 'any'}",
            next_step="give the recipe's split a validation share",
        )
    drawn = np.random.default_rng(seed).permutation(len(candidates))[:n]
    chosen = pa.array(sorted(candidates[i] for i in drawn), pa.string())
    return queries.filter(pc.is_in(queries["query_id"], value_set=chosen)).sort_by("query_id")
