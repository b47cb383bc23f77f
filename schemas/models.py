"""Contract of `models`: one member of the pool."""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract, RowRule

MODELS = Contract(
    name="models",
    says="One member of the pool.",
    key=("model_id",),
    columns=(
        Column("model_id", pa.string(), "name used everywhere in the release"),
        Column("provider", pa.string(), "who serves it", nullable=True),
        Column("family", pa.string(), "model family", nullable=True),
        Column("params_b", pa.float64(), "parameters", unit="10^9", nullable=True),
        Column(
            "price_in",
            pa.float64(),
            "price of prompt tokens",
            unit="USD per 10^6 tokens",
            nullable=True,
        ),
        Column(
            "price_out",
            pa.float64(),
            "price of completion tokens",
            unit="USD per 10^6 tokens",
            nullable=True,
        ),
        Column("price_date", pa.string(), "day the price was read (ISO 8601)", nullable=True),
        Column("price_source", pa.string(), "where the price was read", nullable=True),
        Column(
            "context_window",
            pa.int64(),
            "longest prompt plus completion",
            unit="tokens",
            nullable=True,
        ),
        Column(
            "kind",
            pa.string(),
            "what kind of member it is",
            values={
                "real": "it was asked, or its answers were recorded",
                "pseudo_specialist": "its answers are stated by the recipe, to see whether a "
                "router finds a specialist",
            },
        ),
        Column("simulated", pa.bool_(), "true when a program stands in for the model"),
    ),
    rules=(
        RowRule(
            "prices_not_negative", "coalesce(price_in, 0) >= 0 AND coalesce(price_out, 0) >= 0"
        ),
        RowRule(
            "price_has_date", "(price_in IS NULL AND price_out IS NULL) OR price_date IS NOT NULL"
        ),
    ),
)
