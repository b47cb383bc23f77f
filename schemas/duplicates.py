"""Contract of `duplicates`: membership of a query in a group of near-duplicates."""

from __future__ import annotations

import pyarrow as pa

from schemas.contract import Column, Contract, RowRule

DUPLICATES = Contract(
    name="duplicates",
    says="Membership of a query in a group of near-duplicates.",
    key=("query_id", "encoder", "threshold"),
    columns=(
        Column("query_id", pa.string(), "question"),
        Column("encoder", pa.string(), "encoder used"),
        Column(
            "threshold", pa.float64(), "cosine at or above which two questions are near-duplicates"
        ),
        Column("group_id", pa.string(), "smallest query_id of the group"),
        Column("representative", pa.bool_(), "true for the one that stands for the group"),
        Column("similarity", pa.float64(), "cosine to the representative"),
        Column(
            "label_conflict", pa.bool_(), "some model is right on one member and wrong on another"
        ),
    ),
    rules=(RowRule("similarity_range", "similarity BETWEEN -1.000001 AND 1.000001"),),
)
