"""Contract of `embeddings`: A sentence embedding of a question."""

from __future__ import annotations

from schemas.contract import Contract, columns, rules

EMBEDDINGS = Contract(
    "embeddings",
    "A sentence embedding of a question.",
    key=("query_id", "encoder"),
    columns=columns(
        query_id="string: question",
        encoder="string: encoder name, precision and window",
        seen_chars="int64? [characters]: how much of the text the encoder saw; null when it saw "
        "all of it",
        vector="list<float32>: unit-norm embedding",
    ),
    rules=rules(
        unit_norm="abs(list_dot_product(vector::DOUBLE[], vector::DOUBLE[]) - 1) < 1e-3",
    ),
)
