"""Cascades: ask a model, look at its answer, and ask a dearer one where it is not accepted.

Two kinds, on outcomes that are known of every model, with every answer that was asked paid for:

* FrugalGPT's (arXiv 2305.05176): a list of at most three models, dearer each time, and
  a threshold on what an answer shows of itself (`margin`, `self_assessment`, …) for each but the
  last; list and thresholds are those with the best train accuracy within a budget.
* verified: an answer is accepted where it is right, as tests of a program or a checker of
  results tell. No router knows that beforehand: it is what verifying is worth, and its limit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np

from routeyard.pipelines.common.arrays import Bools, Floats, Ints, mean_costs, ranked
from routeyard.pipelines.common.matrix import Core, Examples
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws, interval
from routeyard.schemas.errors import BadInput

#: Most models of a list, models that lists are made of, and thresholds tried of each.
LONGEST, AMONG, THRESHOLDS = 3, 8, 9


@dataclass(frozen=True, eq=False)
class Ran:
    """A cascade on n questions.

    Attributes:
        choice: (n,) the model whose answer was accepted, or the last one.
        asked: (n,) number of models that were asked.
        cost: (n,) sum of the costs of all answers and checks.
        score: (n,) score of the accepted answer.
    """

    choice: Ints
    asked: Ints
    cost: Floats
    score: Floats


def run(
    order: Sequence[int], accept: Bools, labels: Floats, cost: Floats, check: float = 0.0
) -> Ran:
    """Ask the models in this order until one's answer is accepted.

    Args:
        order: positions of the k models.
        accept: (n, k) whether each answer would be accepted; the last always is.
        labels, cost: (n, m) scores and costs of all models, known where one is asked.
        check: cost of looking at one answer; the last is not looked at.

    >>> y, c = np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([[1.0, 5.0], [1.0, 5.0]])
    >>> done = run([0, 1], y > 0, y, c, check=0.5)
    >>> done.cost.tolist(), done.score.tolist(), done.asked.tolist()
    ([6.5, 1.5], [1.0, 1.0], [2, 1])
    """
    accept = accept.copy()
    accept[:, -1] = True
    at = np.argmax(accept, axis=1)
    rows, models = np.arange(len(labels)), np.asarray(order, dtype=np.int64)
    so_far = np.cumsum(cost[:, models], axis=1)
    checks = np.minimum(at + 1, len(models) - 1)
    choice = models[at]
    return Ran(choice, at + 1, so_far[rows, at] + check * checks, labels[rows, choice])


def cheapest_first(labels: Floats, cost: Floats) -> Ints:
    """(m,) models by mean cost; of equally cheap ones the better goes first (`ranked`).

    >>> cheapest_first(np.array([[0.0, 1.0, 1.0]]), np.array([[1.0, 1.0, 0.5]])).tolist()
    [2, 1, 0]
    """
    price = mean_costs(cost)
    first = ranked(labels, price)
    return np.asarray(first[np.argsort(price[first], kind="stable")])


def verified(labels: Floats, right: Floats, cost: Floats, order: Ints) -> Ran:
    """The cascade over models in this order that stops at the first right answer.

    Args:
        right: (n, m) 1 where an answer is right.
        order: (k,) `cheapest_first` of the train questions, as many as are asked.
    """
    return run(order.tolist(), right[:, order] == 1, labels, cost)


@dataclass(frozen=True)
class Frugal:
    """A fitted list: models in the order asked, and the least of a signal that is accepted."""

    order: tuple[int, ...]
    least: tuple[float, ...]
    check: float = 0.0

    def run(self, shown: Floats, labels: Floats, cost: Floats) -> Ran:
        """The cascade on questions; shown: (n, m) the signal, NaN where nothing is shown."""
        accept = shown[:, list(self.order)] >= np.array([*self.least, -np.inf])
        return run(self.order, accept, labels, cost, self.check)


def frugal(
    train: Examples, shown: Floats, measure: str, budgets: Floats, check: float = 0.0
) -> list[Frugal]:
    """For each budget the list with the best train accuracy whose mean train cost is within it;
    the cheapest model alone where none is.

    Lists are of the `AMONG` models that are best on train and the cheapest one, thresholds
    quantiles of what each shows.

    Raises:
        BadInput: a cost, a label or the signal is missing on train.
    """
    labels, cost = train.labels, train.costs[measure]
    if np.isnan(labels).any() or np.isnan(cost).any() or np.isnan(shown).any():
        raise BadInput(
            "a cascade is fitted on questions of which every model's answer, cost and signal "
            "is known",
            next_step="leave out the questions or the models that lack one",
        )
    by_price = cheapest_first(labels, cost)
    best = ranked(labels, mean_costs(cost))[: AMONG - 1].tolist()
    among = [m for m in by_price.tolist() if m in {*best, int(by_price[0])}]
    grid = np.linspace(0, 1, THRESHOLDS + 1)[1:]
    cuts = {m: np.unique(np.quantile(shown[:, m], grid)) for m in among}
    tried: list[tuple[float, float, Frugal]] = []
    for length in range(1, min(LONGEST, len(among)) + 1):
        for order in combinations(among, length):
            for least in product(*(cuts[m].tolist() for m in order[:-1])):
                one = Frugal(order, least, check)
                done = one.run(shown, labels, cost)
                tried.append((float(done.score.mean()), float(done.cost.mean()), one))
    alone = Frugal((int(by_price[0]),), (), check)
    found = []
    for budget in budgets:
        within = [(score, -paid, k) for k, (score, paid, _) in enumerate(tried) if paid <= budget]
        # Of equally good lists the cheaper, then the one that was tried first: the shorter.
        top = max(within, key=lambda one: (one[0], one[1], -one[2]), default=None)
        found.append(alone if top is None else tried[top[2]][2])
    return found


def surest(signals: Mapping[str, Floats]) -> dict[str, Floats]:
    """Signals that are known of every model on every question, each so that more is surer."""
    lower = ("entropy", "perplexity", "semantic_entropy")
    return {
        name: -values if name.startswith(lower) else values
        for name, values in signals.items()
        if not np.isnan(values).any()
    }


# What each step along an axis of arms gains, loses and costs, question by question.

#: Axis → the column of `models` whose values order it.
ORDERED = {"effort": "effort_level", "output_budget": "output_budget", "samples": "samples"}
#: Columns that say how an arm is asked; arms are compared where all but one are equal.
AXES = ("effort", "output_budget", "prompt_form", "tools", "samples")
#: An estimate with its 95 % interval, questions resampled.
Estimate = tuple[float, float, float]
#: Questions of a task that flip back, shown.
SHOWN = 3


@dataclass(frozen=True, slots=True)
class AxisStep:
    """One model asked with less, then with more of an axis, on the questions both answered.

    Attributes:
        less, more: Scores of the two arms.
        gained, flipped_back: Share of the questions that only the arm with more, and only the one
            with less, got right.
        gain: Score that more adds.
        cost: USD per question that more adds; None where a cost is unknown.
        per_point: USD for one more right answer; None where more is not surely better.
        back: Task → (questions that flip back, their first ids).
    """

    model: str
    axis: str
    fixed: str
    names: tuple[str, str]
    arms: tuple[str, str]
    questions: int
    less: float
    more: float
    gained: float
    flipped_back: float
    gain: Estimate
    cost: Estimate | None
    per_point: Estimate | None
    back: Mapping[str, tuple[int, tuple[str, ...]]]

    @property
    def rises(self) -> bool | None:
        """Whether more is surely better (True) or surely worse (False); None if unknown."""
        return True if self.gain[1] > 0 else False if self.gain[2] < 0 else None


def axis_steps(
    models: Sequence[Mapping[str, Any]], core: Core, *, resamples: int = 2_000, seed: int = 0
) -> list[AxisStep]:
    """Each step along each ordered axis of each model, the other axes equal.

    Args:
        models: Rows of `models`.
    """
    found = []
    for axis, order in ORDERED.items():
        for (model, fixed), arms in sorted(_lines(models, axis, order).items()):
            for less, more in pairwise(arms):
                names = str(less[axis]), str(more[axis])
                pair = less["model_id"], more["model_id"]
                if step := _step(core, pair, resamples, seed):
                    found.append(AxisStep(model, axis, fixed, names, pair, **step))
    return found


def _lines(
    models: Sequence[Mapping[str, Any]], axis: str, order: str
) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """(model, values of the other axes) → its arms from least to most, where there are several."""
    lines: dict[tuple[str, str], dict[Any, Mapping[str, Any]]] = defaultdict(dict)
    for row in sorted(models, key=lambda row: str(row["model_id"])):
        if row.get("base_model") is None or row.get(order) is None:
            continue
        others = [other for other in AXES if other != axis and row.get(other) is not None]
        if axis == "effort":
            # An effort may be a separate budget or prompt.
            others = [one for one in others if not _follows(models, row, one)]
        fixed = ", ".join(f"{one} {row[one]}" for one in others)
        lines[str(row["base_model"]), fixed].setdefault(row[order], row)
    return {
        key: [arms[place] for place in sorted(arms)] for key, arms in lines.items() if len(arms) > 1
    }


def _follows(models: Sequence[Mapping[str, Any]], row: Mapping[str, Any], other: str) -> bool:
    """Whether each effort of the model has one value of another axis: that of the effort itself."""
    values = defaultdict(set)
    for one in models:
        if one.get("base_model") == row["base_model"]:
            values[one.get("effort")].add(one.get(other))
    return all(len(found) == 1 for found in values.values())


def _step(core: Core, pair: tuple[str, str], resamples: int, seed: int) -> dict[str, Any]:
    """What `AxisStep` says of two arms on the questions that both have a label for, if any."""
    at = [core.model_ids.index(name) for name in pair]
    labels = np.asarray(core.labels[:, at], dtype=np.float64)
    both = np.flatnonzero(~np.isnan(labels).any(axis=1))
    if not len(both):
        return {}
    low, high = labels[both].T
    right = (labels if core.correct is None else core.correct[:, at])[both] == 1
    back = right[:, 0] & ~right[:, 1]
    paid = core.costs.get("usd", core.part_costs.get("usd"))
    usd = None if paid is None else np.asarray(paid[both][:, at[1]] - paid[both][:, at[0]])
    if usd is not None and np.isnan(usd).any():
        usd = None
    values = np.column_stack([high - low, np.zeros(len(low)) if usd is None else usd])
    means = Draws(len(both), resamples, seed, core.groups[both]).means(values)
    gain = (_mean(values[:, 0]), *interval(means[:, 0]))
    cost = per_point = None
    if usd is not None:
        cost = (_mean(usd), *interval(means[:, 1]))
        if gain[1] > 0:
            # A resample in which more gains nothing buys no right answer at any price.
            rises = means[:, 0] > 0
            each = np.full(len(means), np.inf)
            np.divide(means[:, 1], means[:, 0], out=each, where=rises)
            per_point = (cost[0] / gain[0], *interval(each))
    return {
        "questions": len(both),
        "less": _mean(low),
        "more": _mean(high),
        "gained": _mean(~right[:, 0] & right[:, 1]),
        "flipped_back": _mean(back),
        "gain": gain,
        "cost": cost,
        "per_point": per_point,
        "back": _back(both[back], core),
    }


def _mean(values: Floats | Bools) -> float:
    return float(values.mean())


def _back(rows: Ints, core: Core) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Task → how many of these questions it has, and the first of them; most first."""
    tasks: dict[str, list[str]] = defaultdict(list)
    for row in rows.tolist():
        tasks[str(core.tasks[row])].append(str(core.query_ids[row]))
    ordered = sorted(tasks.items(), key=lambda item: (-len(item[1]), item[0]))
    return {task: (len(ids), tuple(sorted(ids)[:SHOWN])) for task, ids in ordered}
