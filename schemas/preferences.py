"""Contract of `preferences`: which of two models is preferred, in the field's usual record."""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract, RowRule

PREFERENCES = Contract(
    name="preferences",
    says="Which of two models is preferred on a query, in the field's usual record.",
    key=("id",),
    columns=(
        Column("id", pa.string(), "record id"),
        Column("query_id", pa.string(), "question"),
        Column("model_a", pa.string(), "first model"),
        Column("model_b", pa.string(), "second model"),
        Column("prompt", pa.string(), "the user message; a JSON list of them when n_turns > 1"),
        Column("response_a", pa.string(), "answer of model_a", nullable=True),
        Column("response_b", pa.string(), "answer of model_b", nullable=True),
        Column("winner_model_a", pa.int8(), "1 when model_a wins"),
        Column("winner_model_b", pa.int8(), "1 when model_b wins"),
        Column("winner_tie", pa.int8(), "1 for a tie"),
        Column("se_a", pa.float64(), "semantic entropy of model_a", unit="nat", nullable=True),
        Column("se_b", pa.float64(), "semantic entropy of model_b", unit="nat", nullable=True),
        Column(
            "delta",
            pa.float64(),
            "|(SE_strong - SE_weak) / SE_strong|; null when SE_strong is 0",
            nullable=True,
        ),
        Column(
            "basis",
            pa.string(),
            "`semantic_entropy`, `correctness`, `judge:<name>`, or `imported`",
        ),
        Column(
            "estimator", pa.string(), "estimator of se_a and se_b, the same for both", nullable=True
        ),
        Column(
            "backend", pa.string(), "what decided that two answers mean the same", nullable=True
        ),
        Column(
            "n_turns",
            pa.int32(),
            "user messages; with more than one, prompt and responses are JSON lists",
        ),
    ),
    rules=(
        RowRule(
            "one_winner",
            "winner_model_a + winner_model_b + winner_tie = 1 "
            "AND least(winner_model_a, winner_model_b, winner_tie) = 0",
        ),
        RowRule("two_models", "model_a <> model_b"),
        RowRule("has_turns", "n_turns >= 1"),
    ),
)
