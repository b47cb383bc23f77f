"""Contracts of `embeddings` and `hidden_states`: vectors of questions."""

from __future__ import annotations

from routeyard.schemas.contract import Contract, columns, rules

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

HIDDEN_STATES = Contract(
    "hidden_states",
    "Mean-pooled hidden state of one layer for one query.",
    key=("query_id", "model_id", "layer"),
    columns=columns(
        query_id="string: question",
        model_id="string: local causal language model",
        layer="int32: 0 is the embedding layer",
        vector="list<float32>: mean over the prompt's tokens",
    ),
    rules=rules(
        layer_not_negative="layer >= 0",
    ),
)
