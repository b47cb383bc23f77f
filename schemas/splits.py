"""Contract of `splits`: where a query stands in one split scheme."""

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
