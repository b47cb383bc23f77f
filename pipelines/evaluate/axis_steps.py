"""What each step along an axis of arms gains, loses and costs, question by question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from routeyard.pipelines.common.arrays import Bools, Floats, Ints
from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws, interval

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
    results = []
    for axis, order in ORDERED.items():
        for (model, fixed), arms in sorted(_lines(models, axis, order).items()):
            for less, more in pairwise(arms):
                names = str(less[axis]), str(more[axis])
                pair = less["model_id"], more["model_id"]
                if step := _step(core, pair, resamples, seed):
                    results.append(AxisStep(model, axis, fixed, names, pair, **step))
    return results


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
            others = [item for item in others if not _follows(models, row, item)]
        fixed = ", ".join(f"{item} {row[item]}" for item in others)
        lines[str(row["base_model"]), fixed].setdefault(row[order], row)
    return {
        key: [arms[place] for place in sorted(arms)] for key, arms in lines.items() if len(arms) > 1
    }


def _follows(models: Sequence[Mapping[str, Any]], row: Mapping[str, Any], other: str) -> bool:
    """Whether each effort of the model has one value of another axis: that of the effort itself."""
    values = defaultdict(set)
    for model in models:
        if model.get("base_model") == row["base_model"]:
            values[model.get("effort")].add(model.get(other))
    return all(len(value) == 1 for value in values.values())


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
