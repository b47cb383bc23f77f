"""Contract of `preferences`: which of two models is preferred, in the field's usual record."""

from __future__ import annotations

from routeyard.schemas.contract import Contract, columns, rules

PREFERENCES = Contract(
    "preferences",
    "Which of two models is preferred on a query, in the field's usual record.",
    key=("id",),
    columns=columns(
        id="string: record id",
        query_id="string: question",
        model_a="string: first model",
        model_b="string: second model",
        prompt="string: the user message; a JSON list of them when n_turns > 1",
        response_a="string?: answer of model_a",
        response_b="string?: answer of model_b",
        winner_model_a="int8: 1 when model_a wins",
        winner_model_b="int8: 1 when model_b wins",
        winner_tie="int8: 1 for a tie",
        se_a="float64? [nat]: semantic entropy of model_a",
        se_b="float64? [nat]: semantic entropy of model_b",
        delta="float64?: |(SE_strong - SE_weak) / SE_strong|; null when SE_strong is 0",
        basis="string: `semantic_entropy`, `correctness`, `judge:<name>`, or `imported`",
        estimator="string?: estimator of se_a and se_b, the same for both",
        backend="string?: what decided that two answers mean the same",
        n_turns="int32: user messages; with more than one, prompt and responses are JSON lists",
    ),
    rules=rules(
        one_winner="winner_model_a + winner_model_b + winner_tie = 1 AND least(winner_model_a, "
        "winner_model_b, winner_tie) = 0",
        two_models="model_a <> model_b",
        has_turns="n_turns >= 1",
    ),
)
