"""Contract of `duplicates`: membership of a query in a group of near-duplicates."""

from __future__ import annotations

from routeyard.schemas.contract import Contract, columns, rules

DUPLICATES = Contract(
    "duplicates",
    "Membership of a query in a group of near-duplicates.",
    key=("query_id", "encoder", "threshold"),
    columns=columns(
        query_id="string: question",
        encoder="string: encoder used",
        threshold="float64: cosine at or above which two questions are near-duplicates",
        group_id="string: smallest query_id of the group",
        representative="bool: true for the one that stands for the group",
        similarity="float64: cosine to the representative",
        label_conflict="bool: some model is right on one member and wrong on another",
    ),
    rules=rules(
        similarity_range="similarity BETWEEN -1.000001 AND 1.000001",
    ),
)
