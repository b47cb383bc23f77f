"""Contracts of `splits` and `model_splits`: where a query or a model stands in a split scheme."""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract

SPLITS = Contract(
    name="splits",
    says="Where a query stands in one split scheme.",
    key=("scheme", "query_id"),
    columns=(
        Column("scheme", pa.string(), "`dense`, `sparse`, `ood:<group>`, …"),
        Column("query_id", pa.string(), "question"),
        Column(
            "split",
            pa.string(),
            "what the question is for",
            values={
                "train": "routers learn from it",
                "validation": "settings are chosen on it",
                "test": "routers are measured on it",
            },
        ),
    ),
)

MODEL_SPLITS = Contract(
    name="model_splits",
    says="Whether a router may see a model while it trains.",
    key=("scheme", "model_id"),
    columns=(
        Column("scheme", pa.string(), "split scheme"),
        Column("model_id", pa.string(), "model"),
        Column(
            "split",
            pa.string(),
            "whether routers may see it",
            values={"seen": "while they train", "unseen": "only when they are measured"},
        ),
    ),
)
