"""The plateau drawn: every configuration in order, and accuracy against cost (Figures 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from routeyard.papers.routing_plateau.hard_questions import hits
from routeyard.papers.routing_plateau.over_encoders import evaluations, over_encoders, routers_of
from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.evaluate.studies.items import measure_of
from routeyard.pipelines.evaluate.studies.study import StudyCell, StudyContext
from routeyard.schemas.contracts import RESULTS


def configurations(context: StudyContext) -> Sequence[StudyCell]:
    """How many configurations are in the plateau: the top decile, and 0.02 below the best."""
    accuracy = _of_configurations(context)
    cells = [StudyCell("configurations", "number", float(len(accuracy)), "count")]
    if len(accuracy):
        best = float(accuracy.max())
        near = float((accuracy >= best - 0.02).mean())
        cells += [
            StudyCell("best", "accuracy", best, "percent"),
            StudyCell("top decile", "accuracy", float(np.quantile(accuracy, 0.9)), "percent"),
            StudyCell("within 0.02 of the best", "share", near, "percent"),
        ]
    return cells


def _of_configurations(context: StudyContext) -> Floats:
    if context.zoo is None:
        found = over_encoders(evaluations(context), "accuracy")
        return np.array(sorted(found[name].mean for name in routers_of(context)))
    column = context.once("zoo cells", context.zoo.cells).column("test_accuracy")
    return np.sort(column.to_numpy(zero_copy_only=False))


def configuration_curves(context: StudyContext) -> pa.Table:
    """Test accuracy of every configuration in order, and the oracle's."""
    accuracy = _of_configurations(context)
    _, _, _, top = hits(context)
    series = {"configurations": accuracy, "oracle": np.full(len(accuracy), float(top.mean()))}
    return _curves((name, np.arange(1, len(ys) + 1), ys) for name, ys in series.items())


def _curves(series: Iterable[tuple[str, Iterable[float], Iterable[float]]]) -> pa.Table:
    rows = [
        {"series": name, "x": float(x), "y": float(y)}
        for name, xs, ys in series
        for x, y in zip(xs, ys, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=RESULTS["study_curves"])


def accuracy_and_cost(context: StudyContext) -> Sequence[StudyCell]:
    """Accuracy of every router, and its mean cost as a share of the dearest router's."""
    measure = measure_of(context)
    done = evaluations(context)
    accuracy, cost = over_encoders(done, "accuracy"), over_encoders(done, f"mean_cost[{measure}]")
    names = [*routers_of(context), "best single", "oracle"]
    most = max((cost[name].mean for name in names if name in cost), default=0.0)
    cells = []
    for name in names:
        one = accuracy.get(name)
        if one is None:
            continue
        paid = cost[name].mean / most if name in cost and most > 0 else None
        note = None if paid is not None else "the release has no costs"
        cells.append(StudyCell(name, "accuracy", one.mean, "percent", one.low, one.high))
        cells.append(StudyCell(name, "normalised cost", paid, note=note))
    return cells


def plateau_curve(context: StudyContext) -> pa.Table:
    """Accuracy of every router against its normalised cost; by rank where no cost is known."""
    cells = accuracy_and_cost(context)
    accuracy = {c.row: c.value for c in cells if c.column == "accuracy" and c.value is not None}
    cost = {c.row: c.value for c in cells if c.column == "normalised cost" and c.value is not None}
    routers = sorted(set(accuracy) - {"best single", "oracle"}, key=lambda n: (accuracy[n], n))
    x = cost if set(routers) <= set(cost) else {n: k + 1.0 for k, n in enumerate(routers)}
    routers.sort(key=lambda name: x[name])
    ends = [min(x.values(), default=0.0), max(x.values(), default=1.0)]
    lines = [("routers", [x[n] for n in routers], [accuracy[n] for n in routers])]
    lines += [
        (name, ends, [accuracy[name]] * 2) for name in ("best single", "oracle") if name in accuracy
    ]
    return _curves(lines)
