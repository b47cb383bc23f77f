"""Contract of `model_splits`: whether a router may see a model while it trains."""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract, Rule

MODEL_SPLITS = Contract(
    name="model_splits",
    says="Whether a router may see a model while it trains.",
    key=("scheme", "model_id"),
    columns=(
        Column("scheme", pa.string(), "split scheme"),
        Column("model_id", pa.string(), "model"),
        Column("split", pa.string(), "`seen` or `unseen`"),
    ),
    rules=(Rule("split_known", "split IN ('seen', 'unseen')"),),
)
