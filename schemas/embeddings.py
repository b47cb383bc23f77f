"""Contract of `embeddings`: A sentence embedding of a question."""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract, RowRule

EMBEDDINGS = Contract(
    name="embeddings",
    says="A sentence embedding of a question.",
    key=("query_id", "encoder"),
    columns=(
        Column("query_id", pa.string(), "question"),
        Column("encoder", pa.string(), "encoder name, precision and window"),
        Column(
            "seen_chars",
            pa.int64(),
            "how much of the text the encoder saw; null when it saw all of it",
            unit="characters",
            nullable=True,
        ),
        Column("vector", pa.list_(pa.float32()), "unit-norm embedding"),
    ),
    rules=(
        RowRule(
            "unit_norm", "abs(list_dot_product(vector::DOUBLE[], vector::DOUBLE[]) - 1) < 1e-3"
        ),
    ),
)
