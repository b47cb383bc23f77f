"""Selection rules by name: what each does on four questions, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from routeyard.pipelines.common.errors import BadInput
from routeyard.pipelines.evaluate.zoo.run import asked, shares

SCORES = np.array([[0.9, 0.5, 0.2], [0.5, 0.6, 0.1], [0.8, 0.1, 0.7], [0.2, 0.3, 0.9]])
COST = np.array([10.0, 2.0, 1.0])


def used(text: str, scale: str = "probability") -> list[int]:
    found = shares(asked(text), SCORES, COST, router="r", scale=scale)
    assert np.allclose(found.sum(axis=1), 1)
    return found.argmax(axis=1).tolist()


def test_each_rule_does_what_it_says() -> None:
    assert used("argmax") == [0, 1, 0, 2]
    assert used("utility:1") == [2, 2, 2, 2]
    assert used("utility:0") == used("argmax")
    assert used("query-budget:2") == [1, 1, 2, 2]
    # The cheapest above the floor; where none is, the best.
    assert used("sufficient:0.99") == used("argmax")
    assert used("sufficient:0") == [2, 2, 2, 2]
    assert used("similarity:0.5", "similarity") == [1, 1, 2, 2]


def test_a_mean_budget_mixes_two_models() -> None:
    found = shares(asked("mean-budget:4"), SCORES, COST, router="r", scale="probability")
    assert (found @ COST <= 4 + 1e-9).all()
    assert ((found > 0).sum(axis=1) <= 2).all()
    assert found[0, 0] == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("utilty:0.3", "known: argmax, utility"),
        ("utility", "write utility:VALUE with λ from 0 to 1"),
        ("utility:2", "λ from 0 to 1"),
        ("sufficient:nan", "least probability"),
        ("query-budget:inf", "most cost of one question"),
        ("argmax:1", "takes no value"),
    ],
)
def test_what_is_no_rule_is_refused(text: str, says: str) -> None:
    with pytest.raises(BadInput, match="rule") as raised:
        asked(text)
    assert says in str(raised.value)


def test_what_a_router_or_a_release_cannot_do_is_said() -> None:
    with pytest.raises(BadInput, match="needs a probability"):
        used("utility:0.5", "strength")
    with pytest.raises(BadInput, match="no cost is known"):
        shares(asked("utility:0.5"), SCORES, None, router="r", scale="probability")


def test_scores_that_are_no_chances_are_weighed_by_no_rule() -> None:
    # Scores of 13 and 41 were weighed against cost as if they were chances.
    scores, cost = np.array([[13.0, 41.0], [0.5, 0.4]]), np.array([0.1, 0.2])
    settings = {"router": "mine", "scale": "probability"}
    with pytest.raises(BadInput, match=r"scores of 'mine' reach from 0\.4 to 41"):
        shares(asked("utility:0.9"), scores, cost, **settings)
    for rule in ("argmax", "query-budget:1"):
        assert shares(asked(rule), scores, cost, **settings).argmax(axis=1).tolist() == [1, 0]
    assert shares(asked("utility:0.9"), scores / 41, cost, **settings).shape == (2, 2)
