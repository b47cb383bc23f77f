"""Contracts of `splits` and `model_splits`: where a query or a model stands in a split scheme."""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract, Rule

SPLITS = Contract(
    name="splits",
    says="Where a query stands in one split scheme.",
    key=("scheme", "query_id"),
    columns=(
        Column("scheme", pa.string(), "`dense`, `sparse`, `ood:<group>`, …"),
        Column("query_id", pa.string(), "question"),
        Column("split", pa.string(), "`train`, `validation` or `test`"),
    ),
    rules=(Rule("split_known", "split IN ('train', 'validation', 'test')"),),
)

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
