"""Contract of `outcomes`: whether one model got one query right, and what that took."""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract, RowRule
from schemas.labels import LABELS

_OF_THIS = "of this release only: another release numbers anew"

#: Columns of `labels` by name: three stand here as they stand there.
_LABEL = {column.name: column for column in LABELS.columns}

OUTCOMES = Contract(
    name="outcomes",
    says="Whether one model got one query right, and what that took: label and costs in one row.",
    key=("query_id", "model_id"),
    columns=(
        Column("query_no", pa.int32(), f"0-based row of the query in `queries`, {_OF_THIS}"),
        Column("model_no", pa.int16(), f"0-based row of the model in `models`, {_OF_THIS}"),
        Column("query_id", pa.string(), "question"),
        Column("model_id", pa.string(), "model"),
        _LABEL["score"],
        _LABEL["correct"],
        _LABEL["decided_by"],
        Column(
            "cost_usd",
            pa.float64(),
            "cost of all responses of the pair together; null as soon as one is unknown",
            unit="USD",
            nullable=True,
        ),
        Column(
            "prompt_tokens",
            pa.int64(),
            "metered prompts of all its responses; null as soon as one is unknown",
            unit="tokens",
            nullable=True,
        ),
        Column(
            "completion_tokens",
            pa.int64(),
            "metered completions of all its responses, reasoning included; "
            "null as soon as one is unknown",
            unit="tokens",
            nullable=True,
        ),
        Column(
            "reasoning_tokens",
            pa.int64(),
            "metered hidden reasoning of all its responses; null as soon as one is unknown",
            unit="tokens",
            nullable=True,
        ),
        Column(
            "latency_s",
            pa.float32(),
            "mean over its responses, from request sent to last byte; "
            "null as soon as one is unknown",
            unit="s",
            nullable=True,
        ),
        Column(
            "n_samples",
            pa.int32(),
            "responses that entered the label; null when the pair has responses but no label",
            nullable=True,
        ),
        Column(
            "n_responses",
            pa.int32(),
            "responses of the pair: divide costs and tokens by it for those of one answer",
        ),
        Column(
            "contested",
            pa.bool_(),
            "verdicts disagree, or the text commits to several answers; "
            "null when the pair has no label",
            nullable=True,
        ),
    ),
    rules=(
        RowRule("score_range", "score IS NULL OR score BETWEEN 0 AND 1"),
        RowRule("label_whole", "(n_samples IS NULL) = (contested IS NULL)"),
        RowRule("numbers_not_negative", "query_no >= 0 AND model_no >= 0 AND n_responses >= 0"),
        RowRule("costs_of_responses", "n_responses > 0 OR cost_usd IS NULL"),
    ),
)
