"""Contract of `labels`: the court's decision for one model on one query."""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract, RowRule

LABELS = Contract(
    name="labels",
    says="The court's decision for one model on one query.",
    key=("query_id", "model_id"),
    columns=(
        Column("query_id", pa.string(), "question"),
        Column("model_id", pa.string(), "model"),
        Column(
            "score",
            pa.float64(),
            "mean score over samples in [0, 1]; null when undecided",
            nullable=True,
        ),
        Column(
            "correct",
            pa.bool_(),
            "the sample's outcome; of several, whether the mean score reaches the threshold, or "
            "half of them are correct where there is none; null when undecided",
            nullable=True,
        ),
        Column(
            "decided_by",
            pa.string(),
            "scorer that decided, as in `verdicts`; several, of several samples, are joined by "
            "`+`; `unreadable` when every scorer abstained, `pseudo_specialist` for an injected "
            "model, null when undecided",
            nullable=True,
        ),
        Column(
            "contested", pa.bool_(), "verdicts disagree, or the text commits to several answers"
        ),
        Column("n_samples", pa.int32(), "responses that exist and entered the label"),
    ),
    rules=(
        RowRule("score_range", "score IS NULL OR score BETWEEN 0 AND 1"),
        RowRule(
            "decided_whole",
            "(score IS NULL) = (correct IS NULL) AND (score IS NULL OR decided_by IS NOT NULL)",
        ),
    ),
)
