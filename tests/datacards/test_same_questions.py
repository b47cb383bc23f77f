"""No figure of a card or summary puts a model above the oracle it is compared with."""

from __future__ import annotations

import pyarrow as pa

from routeyard.datacards.card import card_numbers
from routeyard.datacards.files import plots
from tests.support.contract_tables import contract_table


def tables() -> dict[str, pa.Table]:
    """m1 answered two easy questions; m0 all four, two of them right; m2 one of four."""
    labels = [("q0", "m0", 1.0), ("q1", "m0", 1.0), ("q2", "m0", 0.0), ("q3", "m0", 0.0),
              ("q0", "m2", 1.0), ("q1", "m2", 0.0), ("q2", "m2", 0.0), ("q3", "m2", 0.0),
              ("q0", "m1", 1.0), ("q1", "m1", 1.0)]  # fmt: skip
    queries, models = [f"q{i}" for i in range(4)], ["m0", "m1", "m2"]
    return {
        "queries": pa.table(
            {"query_id": queries, "task": ["t"] * 4, "domain": ["d"] * 4, "scorer": ["s"] * 4,
             "source": ["s"] * 4}
        ),
        "models": contract_table(
            "models",
            {"model_id": models, "provider": ["p"] * 3, "params_b": [1.0] * 3,
             "price_in": [1.0] * 3, "price_out": [1.0] * 3, "kind": ["real"] * 3,
             "simulated": [False] * 3},
        ),
        "labels": pa.table(
            {"query_id": [a for a, _, _ in labels], "model_id": [b for _, b, _ in labels],
             "score": [c for _, _, c in labels], "correct": [c > 0.5 for _, _, c in labels],
             "contested": [False] * 10, "decided_by": ["s"] * 10}
        ),
    }  # fmt: skip


def test_the_best_single_model_is_compared_on_its_own_questions() -> None:
    found = card_numbers(tables())["best_single"]
    # By the mean of its own questions m1 would lead with 100 %, above the oracle's 50 %.
    assert found["models"] == ["m0"]
    assert (found["accuracy"], found["oracle"]) == (0.5, 0.5)
    assert (found["labelled"], found["judged"]) == (4, 4)


def test_every_bar_has_the_oracle_of_its_own_questions() -> None:
    numbers = card_numbers(tables())
    for row in numbers["models"]:
        assert row["accuracy"] <= row["oracle"]
    drawn = plots(numbers)["plots/accuracy.svg"].decode()
    assert "per-query oracle on the model" in drawn
