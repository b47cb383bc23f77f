"""Routers over a stream: what they see, what it costs, and regret against counts by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from routeyard.extensions.traffic.online import LEARNERS, StreamOfArms, opened, serve
from routeyard.pipelines.common.arrays import Floats, Ints
from routeyard.pipelines.common.errors import BadInput


def stream(
    right: Floats, cost: Sequence[float], price: float = 0.0, **shares: dict
) -> StreamOfArms:
    n, m = right.shape
    names = tuple("abcdef"[:m])
    arms = opened(n, names, shares.get("appear", {}), shares.get("retire", {}))
    costs = np.tile(np.array(cost, dtype=float), (n, 1))
    return StreamOfArms(np.ones((n, 1)), right, costs, arms, right > 0.5, price)


class Noted:
    """Asks given arms in turn for every question, and notes what it hears."""

    def __init__(self, arms: Sequence[int]) -> None:
        self.arms, self.heard, self.open = arms, [], []

    def next(self, x: Floats, open_arms: Ints, asked: Sequence[tuple[int, bool]]) -> int | None:
        if not asked:
            self.open.append(open_arms.tolist())
        return self.arms[len(asked)] if len(asked) < len(self.arms) else None

    def learn(self, x: Floats, arm: int, right: float, cost: float) -> None:
        self.heard.append((arm, right, cost))


def test_every_answer_that_was_asked_for_is_paid_and_no_other_is_heard_of() -> None:
    right = np.array([[0.0, 1, 1], [1, 0, 1]])
    learner = Noted([0, 1])
    served = serve(stream(right, [1.0, 2.0, 9.0], price=0.1), learner)
    assert served.choice.tolist() == [1, 1]
    assert (served.score.tolist(), served.cost.tolist()) == ([1, 0], [3, 3])
    assert learner.heard == [(0, 0.0, 0.1), (1, 1.0, 0.2), (0, 1.0, 0.1), (1, 0.0, 0.2)]
    assert served.worth(0.1) == pytest.approx([0.7, -0.3])


def test_the_best_fixed_arm_is_that_of_each_period_and_the_oracle_that_of_each_question() -> None:
    right = np.array([[1.0, 0, 1], [1, 1, 0], [0, 1, 1], [0, 0, 1]])
    given = stream(right, [0.0, 0.0, 0.0], appear={"c": 0.5}, retire={"a": 0.5})
    assert given.periods() == [(0, 2), (2, 4)]
    fixed, oracle = given.best_fixed(), given.oracle()
    assert fixed.choice.tolist() == [0, 0, 2, 2]
    assert fixed.score.sum() == oracle.score.sum() == 4
    dear = stream(right, [0.0, 0.0, 0.6], price=1.0)  # c is right more often, and not worth it
    assert dear.best_fixed().choice.tolist() == [0, 0, 0, 0]
    assert dear.oracle().worth(1.0).tolist() == pytest.approx([1, 1, 1, 0.4])


@pytest.mark.parametrize("name", ["epsilon-greedy", "thompson", "linucb"])
def test_routers_learn_the_best_arm_and_find_the_one_that_appears(name: str) -> None:
    rng = np.random.default_rng(0)
    right = (rng.random((1_500, 3)) < [0.3, 0.6, 0.9]).astype(float)
    given = stream(right, [1.0, 1.0, 1.0], price=0.05, appear={"c": 0.4})
    served = serve(given, LEARNERS[name](3, 1, 7))
    uniform = serve(given, LEARNERS["random"](3, 1, 7))

    def regret(done: object) -> float:
        return float((given.best_fixed().worth(0.05) - done.worth(0.05)).sum())

    assert regret(served) < 0.5 * regret(uniform)
    assert (served.choice[-300:] == 2).mean() > 0.6
    assert (served.choice[:600] != 2).all()


def test_a_bandit_on_features_learns_which_arm_suits_which_question() -> None:
    rng = np.random.default_rng(0)
    side = rng.random(1_000) < 0.5
    right = np.column_stack([side, ~side]).astype(float)
    features = np.column_stack([np.where(side, 1.0, -1.0), np.ones(1_000)])
    arms = opened(1_000, ("a", "b"), {}, {})
    given = StreamOfArms(features, right, np.zeros((1_000, 2)), arms, right > 0.5)
    served = serve(given, LEARNERS["linucb"](2, 2, 0))
    assert served.score[-500:].mean() == 1.0
    assert (given.best_fixed().score.sum() - served.score.sum()) < -400  # far above any fixed arm


def test_a_cascade_stops_at_the_answer_that_the_check_accepts() -> None:
    # Cheap a is right on every other question; b always.
    right = np.column_stack([np.arange(400) % 2 == 0, np.ones(400)]).astype(float)
    served = serve(stream(right, [1.0, 5.0], price=0.1), LEARNERS["cascade"](2, 1, 0))
    assert served.score[10:].all()
    assert served.calls[10:].tolist() == [1, 2] * 195
    # A right answer is worth less than what b costs: nobody asks it a second time.
    poor = serve(stream(right, [1.0, 5.0], price=0.3), LEARNERS["cascade"](2, 1, 0))
    assert set(poor.calls[10:].tolist()) == {1}


def test_arms_that_are_not_open_cannot_be_asked() -> None:
    given = stream(np.ones((4, 2)), [0.0, 0.0], retire={"a": 0.5})
    with pytest.raises(BadInput, match="is not open"):
        serve(given, Noted([0]))
    with pytest.raises(BadInput, match="no arm"):
        serve(given, Noted([]))
    with pytest.raises(BadInput, match="which it asked before"):
        serve(given, Noted([1, 1]))
    learner = Noted([1])
    serve(given, learner)
    assert learner.open == [[0, 1], [0, 1], [1], [1]]


@pytest.mark.parametrize(
    ("appear", "retire", "says"),
    [
        ({"x": 0.5}, {}, "there is no arm 'x'"),
        ({"a": 1.5}, {}, "is no share"),
        ({"a": 0.5, "b": 0.5}, {}, "no arm is open"),
    ],
)
def test_shares_that_cannot_be_are_named(
    appear: dict[str, float], retire: dict[str, float], says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        opened(10, ("a", "b"), appear, retire)
