"""Pairwise annotations against a reference model, as judge verdicts (AlpacaEval)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.errors import BadInput
from schemas import VERDICTS


def verdicts_from_preferences(
    annotations: pa.Table, *, judge: str, version: str = "imported"
) -> pa.Table:
    """Verdicts of `judge:<judge>` from preferences between a reference and a model.

    The score is preference − 1: 0 when the reference is preferred, 1 when the model
    is, ½ for a tie. `correct` means at least as good as the reference (y = 1[S ≥ S_ref]).

    Args:
        annotations: `query_id`, `model_id` (texts) and `preference` (1 to 2, as in
            AlpacaEval's annotations); a null preference files an `error`.

    Returns:
        VERDICTS contract, cost unknown, sorted by key.

    Raises:
        BadInput: a preference outside [1, 2].
    """
    preference = annotations.column("preference").cast(pa.float64())
    given = pc.drop_null(preference)
    outside = pc.or_(pc.less(given, 1), pc.greater(given, 2))
    if pc.any(outside).as_py():
        raise BadInput(
            f"a preference of {given.filter(outside)[0].as_py()} is not between 1 and 2",
            where=f"judge {judge}",
            next_step="map other scales to 1 (reference preferred) … 2 (model preferred)",
        )
    n = annotations.num_rows
    score = pc.subtract(preference, 1)
    outcome = pc.if_else(pc.greater_equal(score, 0.5), "correct", "incorrect")
    columns: dict[str, Any] = {
        "query_id": annotations.column("query_id").cast(pa.string()),
        "model_id": annotations.column("model_id").cast(pa.string()),
        "sample": pa.array([0] * n, pa.int32()),
        "scorer": pa.repeat(f"judge:{judge}", n),
        "scorer_version": pa.repeat(version, n),
        "outcome": pc.fill_null(outcome, "error"),
        "score": score,
        "extracted": pc.cast(preference, pa.string()),
        "span_start": pa.nulls(n, pa.int64()),
        "span_end": pa.nulls(n, pa.int64()),
        "conflict": pa.repeat(False, n),
        "reason": pc.if_else(pc.is_null(score), "no preference was given", "imported preference"),
        "cost_usd": pa.nulls(n, pa.float64()),
    }
    table = VERDICTS.check(pa.table(columns))
    return table.sort_by([(name, "ascending") for name in VERDICTS.key])


def win_rates(verdicts: pa.Table) -> pa.Table:
    """Win rate and its standard error of each model, in percent.

    win_rate = 100 · mean(score); standard_error = 100 · s / √n with the sample
    standard deviation (n − 1), over verdicts that hold a score.

    Returns:
        model_id, scorer, win_rate, standard_error, n; sorted by both names.
    """
    scored = verdicts.filter(pc.is_valid(verdicts.column("score")))
    grouped = scored.group_by(["model_id", "scorer"]).aggregate(
        [
            ("score", "mean"),
            ("score", "stddev", pc.VarianceOptions(ddof=1)),
            ("score", "count"),
        ]
    )
    n = grouped.column("score_count")
    error = pc.divide(grouped.column("score_stddev"), pc.sqrt(n.cast(pa.float64())))
    table = pa.table(
        {
            "model_id": grouped.column("model_id"),
            "scorer": grouped.column("scorer"),
            "win_rate": pc.multiply(grouped.column("score_mean"), 100.0),
            "standard_error": pc.multiply(error, 100.0),
            "n": n,
        }
    )
    return table.sort_by([("model_id", "ascending"), ("scorer", "ascending")])
