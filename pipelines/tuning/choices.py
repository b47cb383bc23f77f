"""Contract of `tuned`: which model routers with frozen and with trained encoders ask.

It is not part of a release: a file beside it, for the studies `tuning_*`.
"""

from __future__ import annotations

from routeyard.schemas.contract import Contract, columns, rules

TUNED = Contract(
    "tuned",
    "Which model each router asks, its encoder frozen or trained, written by `zoo tune`.",
    key=("data", "router", "encoder", "train_rows", "tuned", "seed", "query_id"),
    columns=columns(
        data="string: hash of the test questions and labels that it was measured on",
        router="string: router",
        encoder="string: encoder it started from",
        parameters="int64: parameters of the encoder",
        train_rows="int64: questions it was trained on",
        tuned="bool: whether the encoder was trained; else frozen",
        seed="int32: seed of the training",
        query_id="string: question of the test split",
        model_id="string: model that is asked, cost disregarded",
    ),
    rules=rules(
        sizes_are_positive="parameters >= 0 AND train_rows > 0",
    ),
)
