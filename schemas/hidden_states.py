"""Contract of `hidden_states`: mean-pooled hidden state of one layer for one query."""

from __future__ import annotations

from schemas.contract import Contract, columns, rules

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
