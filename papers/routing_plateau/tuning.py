"""Scaled fine-tuning: data, encoder and end-to-end training, from what `zoo tune` wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from routeyard.extensions.tuning.training import REFERENCE_ROUTER
from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.evaluate.metrics.bootstrap import Draws, interval
from routeyard.pipelines.evaluate.studies.needs import runs_of, split_of
from routeyard.pipelines.evaluate.studies.study import StudyCell, StudyContext

#: (parameters of the encoder, its name, train questions, tuned)
Place = tuple[int, str, int, bool]


def hits(context: StudyContext, tables: Mapping[str, pa.Table]) -> dict[str, dict[Place, Floats]]:
    """Router → place → (n,) label of the model it asks on each test question, mean over seeds."""
    found = runs_of(context, tables)
    assert found is not None
    core, scheme = split_of(context, tables)
    test = core.rows(scheme, "test")
    labels = core.labels[test][~np.all(np.isnan(core.labels[test]), axis=1)]
    ids = [core.query_ids[r] for r in test if not np.all(np.isnan(core.labels[r]))]
    at = {q: k for k, q in enumerate(ids)}
    column = {m: k for k, m in enumerate(core.model_ids)}
    total: dict[str, dict[Place, Floats]] = {}
    seeds: dict[tuple[str, Place], set[int]] = {}
    for row in found.to_pylist():
        place = (row["parameters"], row["encoder"], row["train_rows"], row["tuned"])
        sums = total.setdefault(row["router"], {}).setdefault(place, np.zeros(len(ids)))
        sums[at[row["query_id"]]] += labels[at[row["query_id"]], column[row["model_id"]]]
        seeds.setdefault((row["router"], place), set()).add(row["seed"])
    return {
        router: {p: v / len(seeds[router, p]) for p, v in sorted(places.items())}
        for router, places in total.items()
    }


def _common(found: Mapping[str, Mapping[Place, Floats]]) -> tuple[list[str], list[Place]]:
    """Routers that learn and have every place, and the places, the plainest first.

    Where no router has every place: all that learn, and the places that all of them have.
    """
    learn = sorted(name for name in found if name != REFERENCE_ROUTER)
    places = set().union(*(found[name] for name in learn))
    routers = [name for name in learn if places <= set(found[name])]
    if not routers:
        routers = learn
        places = set.intersection(*(set(found[name]) for name in learn)) if learn else set()
    return routers, sorted(places, key=lambda p: (p[3], p[2], p[0], p[1]))


def _named(place: Place) -> str:
    _, encoder, rows, tuned = place
    short = encoder.rstrip("/").rpartition("/")[2]
    return f"{rows:,}, {'tuned' if tuned else 'frozen'}, {short}"


def _mean(
    context: StudyContext, values: Floats, row: str, column: str, points: bool = False
) -> StudyCell:
    """A mean over test questions with its interval; a difference in points."""
    replicates = Draws(len(values), context.resamples, context.seed).means(values[:, None])[:, 0]
    low, high = interval(replicates)
    unit: Literal["points", "percent"] = "points" if points else "percent"
    return StudyCell(row, column, float(values.mean()), unit, low, high)


def ablation(context: StudyContext) -> Sequence[StudyCell]:
    found = hits(context, context.tables)
    routers, places = _common(found)
    cells = []
    means = {p: np.mean([found[name][p] for name in routers], axis=0) for p in places}
    for place in places:
        cells.append(_mean(context, means[place], _named(place), "mean accuracy"))
        if place == places[0]:
            cells.append(StudyCell(_named(place), "Δ", None, "points", note="the baseline"))
        else:
            gain = means[place] - means[places[0]]
            cells.append(_mean(context, gain, _named(place), "Δ", points=True))
        cells.append(StudyCell(_named(place), "routers", float(len(routers)), "count"))
    return cells


def gains(context: StudyContext) -> Sequence[StudyCell]:
    cells = []
    for name, places in hits(context, context.tables).items():
        order = sorted(places, key=lambda p: (p[3], p[2], p[0], p[1]))
        first, last = places[order[0]], places[order[-1]]
        cells.append(_mean(context, first, name, "baseline"))
        cells.append(_mean(context, last, name, "scaled"))
        cells.append(_mean(context, last - first, name, "gain", points=True))
        cells.append(StudyCell(name, "scaled is", text=_named(order[-1])))
    return cells


def across(context: StudyContext) -> Sequence[StudyCell]:
    every = {context.release: context.tables, **context.joined, **context.tested}
    cells = []
    for name, tables in every.items():
        rows = runs_of(context, tables)
        if rows is None or not rows.num_rows:
            cells.append(StudyCell(name, "best tuned", None, "percent", note="not measured"))
            continue
        found = hits(context, tables)
        routers, places = _common(found)
        most = max(p[2] for p in places)
        best: tuple[Floats, str] | None = None
        for place in [p for p in places if p[2] == most]:
            how, short = _named(place).split(", ")[1:]
            mean = np.mean([found[r][place] for r in routers], axis=0)
            cells.append(_mean(context, mean, name, f"{how} {short}"))
            for router in routers if place[3] else ():
                one = found[router][place]
                if best is None or one.mean() > best[0].mean():
                    best = (one, f"{router}, {short}")
        knn = [v for p, v in found.get(REFERENCE_ROUTER, {}).items() if p[2] == most]
        if best is not None:
            cells.append(_mean(context, best[0], name, "best tuned"))
            cells.append(StudyCell(name, "which", text=best[1]))
        if best is not None and knn:
            near = max(knn, key=lambda v: float(v.mean()))
            cells.append(_mean(context, near, name, "best frozen kNN"))
            cells.append(_mean(context, best[0] - near, name, "Δ", points=True))
    return cells
