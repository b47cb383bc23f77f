"""What models show of themselves, as arrays: signals of answers, hidden states, descriptors.

Names of the signals, of every (question, model) pair that has them, means over samples:

* `entropy`, `margin`, `max_logit`, `perplexity`, `self_assessment`: columns of `signals`;
* `semantic_entropy[<estimator>]`: of `entropies`, one per estimator (nat). Of several
  backends the first in order counts.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.arrays import Floats, Vectors
from routeyard.pipelines.errors import BadInput, did_you_mean
from routeyard.pipelines.matrix.dense import codes, dense

#: Columns of the table `signals` that routers read.
COLUMNS = ("entropy", "margin", "max_logit", "perplexity", "self_assessment")


def signals_of(
    signals: pa.Table | None, entropies: pa.Table | None, query_ids: pa.Array, model_ids: pa.Array
) -> dict[str, Floats]:
    """Signal → (n, m) with NaN where nobody looked; a signal nobody has is absent."""
    shape = (len(query_ids), len(model_ids))
    found: dict[str, Floats] = {}
    if signals is not None and signals.num_rows:
        rows = codes(signals.column("query_id"), query_ids)
        columns = codes(signals.column("model_id"), model_ids)
        for name in COLUMNS:
            found[name] = dense(rows, columns, signals.column(name), shape)
    if entropies is not None and entropies.num_rows:
        for estimator in sorted(set(entropies.column("estimator").to_pylist())):
            part = entropies.filter(pc.equal(entropies.column("estimator"), estimator))
            backend = min(part.column("backend").to_pylist())
            part = part.filter(pc.equal(part.column("backend"), backend))
            found[f"semantic_entropy[{estimator}]"] = dense(
                codes(part.column("query_id"), query_ids),
                codes(part.column("model_id"), model_ids),
                part.column("semantic_entropy"),
                shape,
            )
    return {name: values for name, values in found.items() if not np.isnan(values).all()}


def states_of(
    states: pa.Table | None, query_ids: pa.Array, model: str | None = None
) -> tuple[Vectors | None, str]:
    """((n, L, d) hidden states of one model, its name); NaN rows for questions not read.

    Args:
        model: the first name in order when None.

    Raises:
        BadInput: there is no such model, or its vectors differ in width or its
            questions in layers.
    """
    if states is None or not states.num_rows:
        return None, ""
    names = sorted(set(states.column("model_id").to_pylist()))
    chosen = model or names[0]
    if chosen not in names:
        raise BadInput(
            f"there are no hidden states of {chosen!r}", next_step=did_you_mean(chosen, names)
        )
    part = states.filter(pc.equal(states.column("model_id"), chosen))
    rows = codes(part.column("query_id"), query_ids)
    part, rows = part.filter(pa.array(rows >= 0)), rows[rows >= 0]
    if not len(rows):
        return None, ""
    layer = part.column("layer").to_numpy().astype(np.int64)
    vectors = stacked(part.column("vector"), f"hidden states of {chosen}")
    found = np.full((len(query_ids), int(layer.max()) + 1, vectors.shape[1]), np.nan, np.float32)
    found[rows, layer] = vectors
    whole = ~np.isnan(found[:, :, 0])
    ragged = whole.any(axis=1) & ~whole.all(axis=1)
    if ragged.any():
        raise BadInput(
            f"{int(ragged.sum())} questions lack some layers of {chosen!r}, such as "
            f"{query_ids[int(np.argmax(ragged))]}",
            next_step="run `routeyard hidden-states` to its end",
        )
    return found, chosen


def descriptors_of(descriptors: pa.Table | None, model_ids: pa.Array) -> dict[str, Vectors]:
    """Kind → (m, k) descriptors; NaN rows for models without one of that kind."""
    found: dict[str, Vectors] = {}
    if descriptors is None:
        return found
    for kind in sorted(set(descriptors.column("kind").to_pylist())):
        part = descriptors.filter(pc.equal(descriptors.column("kind"), kind))
        rows = codes(part.column("model_id"), model_ids)
        part, rows = part.filter(pa.array(rows >= 0)), rows[rows >= 0]
        if len(rows):
            vectors = stacked(part.column("vector"), f"descriptors of kind {kind}")
            found[kind] = np.full((len(model_ids), vectors.shape[1]), np.nan, np.float32)
            found[kind][rows] = vectors
    return found


def stacked(column: pa.ChunkedArray, what: str) -> Vectors:
    """(rows, width) of a column of lists.

    Raises:
        BadInput: they differ in length.
    """
    widths = pc.unique(pc.list_value_length(column)).to_pylist()
    if len(widths) != 1 or not widths[0]:
        raise BadInput(
            f"the {what} differ in length: {sorted(w or 0 for w in widths)}",
            next_step="make them anew with one command, so that they share their axes",
        )
    flat = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return np.asarray(flat, dtype=np.float32).reshape(-1, widths[0])
