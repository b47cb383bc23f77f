"""Contract of `verdicts`: what one scorer says of one response. Append-only."""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract, RowRule

VERDICTS = Contract(
    name="verdicts",
    says="What one scorer says of one response. Append-only.",
    key=("query_id", "model_id", "sample", "scorer", "scorer_version"),
    columns=(
        Column("query_id", pa.string(), "question"),
        Column("model_id", pa.string(), "model"),
        Column("sample", pa.int32(), "0-based sample number"),
        Column(
            "scorer",
            pa.string(),
            "name of a rule scorer, `given` (a score that came with the answer), "
            "`xverify:<model>`, `judge:<name>` or `human:<name>`",
        ),
        Column("scorer_version", pa.string(), "version of the scorer"),
        Column(
            "outcome",
            pa.string(),
            "what it says",
            values={
                "correct": "the answer is right",
                "incorrect": "the answer is wrong",
                "abstain": "no answer could be read",
                "error": "the scorer itself failed: says nothing of the answer",
            },
        ),
        Column(
            "score",
            pa.float64(),
            "graded score in [0, 1]; null for abstain and error",
            nullable=True,
        ),
        Column("extracted", pa.string(), "the answer the scorer read", nullable=True),
        Column(
            "span_start",
            pa.int64(),
            "where it stands in the text",
            unit="characters",
            nullable=True,
        ),
        Column("span_end", pa.int64(), "end, exclusive", unit="characters", nullable=True),
        Column("conflict", pa.bool_(), "the text commits to several different answers"),
        Column("reason", pa.string(), "why, or the judge's text"),
        Column(
            "cost_usd",
            pa.float64(),
            "cost of asking; null when unknown, 0 for rules",
            unit="USD",
            nullable=True,
        ),
    ),
    rules=(
        RowRule("score_range", "score IS NULL OR score BETWEEN 0 AND 1"),
        RowRule("score_iff_decided", "(score IS NOT NULL) = (outcome IN ('correct', 'incorrect'))"),
        RowRule("span_whole", "(span_start IS NULL) = (span_end IS NULL)"),
    ),
)
