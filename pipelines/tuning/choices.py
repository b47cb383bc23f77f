"""Contract of `tuned`: which model routers with frozen and with trained encoders ask.

No release holds it: it stands beside one, for the studies `tuning_*`.
"""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract, RowRule

TUNED = Contract(
    name="tuned",
    says="Which model each router asks, its encoder frozen or trained, written by `zoo tune`.",
    key=("data", "router", "encoder", "train_rows", "tuned", "seed", "query_id"),
    columns=(
        Column(
            "data", pa.string(), "hash of the test questions and labels that it was measured on"
        ),
        Column("router", pa.string(), "router"),
        Column("encoder", pa.string(), "encoder it started from"),
        Column("parameters", pa.int64(), "parameters of the encoder"),
        Column("train_rows", pa.int64(), "questions it was trained on"),
        Column("tuned", pa.bool_(), "whether the encoder was trained; else frozen"),
        Column("seed", pa.int32(), "seed of the training"),
        Column("query_id", pa.string(), "question of the test split"),
        Column("model_id", pa.string(), "model that is asked, cost disregarded"),
    ),
    rules=(RowRule("sizes_are_positive", "parameters >= 0 AND train_rows > 0"),),
)
