"""Contract of `hidden_states`: mean-pooled hidden state of one layer for one query."""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract, RowRule

HIDDEN_STATES = Contract(
    name="hidden_states",
    says="Mean-pooled hidden state of one layer for one query.",
    key=("query_id", "model_id", "layer"),
    columns=(
        Column("query_id", pa.string(), "question"),
        Column("model_id", pa.string(), "local causal language model"),
        Column("layer", pa.int32(), "0 is the embedding layer"),
        Column("vector", pa.list_(pa.float32()), "mean over the prompt's tokens"),
    ),
    rules=(RowRule("layer_not_negative", "layer >= 0"),),
)
