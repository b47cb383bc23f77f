"""A rule by its name applied to a router's scores: `rule` or `rule:value`, as commands take it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.evaluate import rules
from routeyard.pipelines.metrics.selection import best, cost_penalised, within_budget
from routeyard.pipelines.routers.base import no_chances

Floats = NDArray[np.float64]

#: Rule → what its value is; rules that are not here take none.
VALUES = {
    "utility": "λ from 0 to 1",
    "similarity": "λ, at least 0",
    "query-budget": "most cost of one question",
    "sufficient": "least probability of a right answer, from 0 to 1",
    "mean-budget": "most mean cost of a question",
    "batch-budget": "most mean cost over the batch",
    "threshold": "share of questions for the strong model, from 0 to 1",
}
#: Rules that look at all questions at once.
OF_A_BATCH = ("batch-budget", "threshold")


@dataclass(frozen=True)
class ChoiceRequest:
    """A rule with its value; `text` is how it was written."""

    rule: str
    value: float | None

    @property
    def text(self) -> str:
        return self.rule if self.value is None else f"{self.rule}:{self.value:g}"


def asked(text: str) -> ChoiceRequest:
    """What `rule:value` says.

    Raises:
        BadInput: there is no such rule, or its value is missing, extra or out of range.

    >>> asked("utility:0.3")
    ChoiceRequest(rule='utility', value=0.3)
    """
    rule, _, written = text.partition(":")
    if rule not in rules.RULES:
        raise BadInput(f"there is no rule {rule!r}", next_step=f"known: {', '.join(rules.RULES)}")
    if rule not in VALUES:
        if written:
            raise BadInput(f"the rule {rule!r} takes no value", next_step=f"write {rule}")
        return ChoiceRequest(rule, None)
    try:
        value = float(written)
    except ValueError:
        value = float("nan")
    high = 1.0 if rule in ("utility", "threshold", "sufficient") else np.inf
    if not 0 <= value <= high or np.isinf(value):
        raise BadInput(
            f"the rule {rule!r} needs a value; got {written!r}",
            next_step=f"write {rule}:VALUE with {VALUES[rule]}",
        )
    return ChoiceRequest(rule, value)


def shares(
    what: ChoiceRequest,
    scores: Floats,
    cost: Floats | None,
    *,
    router: str,
    scale: str,
    means: Floats | None,
    order: NDArray[np.int64] | None = None,
) -> Floats:
    """(n, m) share with which each model is asked: rows of one 1, but for `mean-budget`.

    Args:
        cost: (m,) cost a router knows beforehand; None where none is known.
        means: (m,) mean label on train, which says who is strong; needed by `threshold`.
        order: (m,) models, the first of which wins a tie; by default the order of columns,
            in which a release is read best on train first.

    Raises:
        BadInput: the rule cannot use these scores, or needs costs that are not known.
    """
    rules.refuse(what.rule, scale, router)
    of_chances = rules.RULES[what.rule][0] == ("probability",)
    if of_chances and (beyond := no_chances(scores)) is not None:
        raise BadInput(
            f"the rule {what.rule!r} weighs chances from 0 to 1, and the scores of {router!r} "
            f"{beyond}",
            next_step="scale them, or give the router `traits = Traits(scale=…)` that fits them",
        )
    if cost is None and what.rule != "argmax":
        raise BadInput(
            f"the rule {what.rule!r} weighs cost, and no cost is known for every model",
            next_step="use argmax, or a release with prices",
        )
    price = np.zeros(scores.shape[1]) if cost is None else cost
    can = np.ones(scores.shape, dtype=bool)
    first = np.arange(scores.shape[1]) if order is None else order
    if what.rule == "mean-budget":
        return rules.mean_budget(scores, price, float(what.value or 0.0))
    value = float(what.value or 0.0)
    at, whole = np.array([value]), np.broadcast_to(price, scores.shape)
    choose: dict[str, Callable[[], NDArray[Any]]] = {
        "argmax": lambda: best(scores, can, first),
        "utility": lambda: cost_penalised(scores, can, price, at, first)[:, 0],
        "query-budget": lambda: within_budget(scores, can, price, at, first)[:, 0],
        "sufficient": lambda: rules.cheapest_sufficient(scores, price, value),
        "similarity": lambda: rules.similarity_minus_cost(scores, price, value, first),
        "batch-budget": lambda: rules.batch_budget(scores, whole, value * len(scores)),
        "threshold": lambda: _of_pair(scores, price, means, value),
    }
    choice = choose[what.rule]().astype(np.int64)
    return np.eye(scores.shape[1])[choice]


def _of_pair(scores: Floats, cost: Floats, means: Floats | None, share: float) -> NDArray[np.int64]:
    """The most accurate and the cheapest model of train, the former for a share of questions."""
    from routeyard.pipelines.routers.trees.rorf import strong_and_cheap

    if means is None or len(cost) < 2:
        raise BadInput(
            "the rule 'threshold' chooses between a strong and a cheap model of a batch",
            next_step="use it with `routeyard zoo run --rule`, on a pool of at least two models",
        )
    strong, cheap = strong_and_cheap(means, cost, np.arange(len(means)))
    up = rules.quantile_threshold(scores[:, strong] - scores[:, cheap], share)
    return np.where(up, strong, cheap)
