"""Contracts of `splits` and `model_splits`: to which part of a scheme a query or model belongs."""

from __future__ import annotations

from routeyard.schemas.contract import Contract, columns

SPLITS = Contract(
    "splits",
    "Where a query stands in one split scheme.",
    key=("scheme", "query_id"),
    columns=columns(
        scheme="string: `dense`, `sparse`, `ood:<group>`, …",
        query_id="string: question",
        split=(
            "string: what the question is for",
            {
                "train": "routers learn from it",
                "validation": "settings are chosen on it",
                "test": "routers are measured on it",
            },
        ),
    ),
)

MODEL_SPLITS = Contract(
    "model_splits",
    "Whether a router may see a model while it trains.",
    key=("scheme", "model_id"),
    columns=columns(
        scheme="string: split scheme",
        model_id="string: model",
        split=(
            "string: whether routers may see it",
            {"seen": "while they train", "unseen": "only when they are measured"},
        ),
    ),
)
