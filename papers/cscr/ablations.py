"""Ablations of CSCR: descriptors, loss, bands, neighbours, penalty, temperatures, size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.papers.cscr.spectrum import at_peak
from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.evaluate.studies.items import Columns, cells_of, curve_table, measure_of
from routeyard.pipelines.evaluate.studies.study import StudyCell, StudyContext, made

#: Row → `router` and its settings.
Rows = Mapping[str, Mapping[str, Any]]
COLUMNS: Columns = {
    "audc[{measure}]": ("AUDC", "number"),
    "qnc[{measure}]": ("QNC", "number"),
    "peak_accuracy[{measure}]": ("peak accuracy", "percent"),
}


def _measured(context: StudyContext, rows: Rows) -> Evaluation:
    return context.measured({label: made(**setting) for label, setting in rows.items()})


def cells(context: StudyContext, rows: Rows) -> Sequence[StudyCell]:
    """Deferral columns of each row, and the mean cost at its peak."""
    done, measure = _measured(context, rows), measure_of(context)
    found = cells_of(done, COLUMNS, list(rows), measure)
    points = curve_table(done, "deferral", measure).to_pylist()
    for label in rows:
        own = np.array([[r["x"], r["y"]] for r in points if r["series"] == label])
        found.append(StudyCell(label, "cost at peak", at_peak(own), "number"))
    return found


def _settings(setting: str, values: Sequence[Any]) -> Rows:
    return {
        f"{setting}={value:g}": {"router": "cscr", "preset": "text", setting: value}
        for value in values
    }


def over(context: StudyContext, setting: str, values: Sequence[Any]) -> Sequence[StudyCell]:
    """CSCR with each value of one of its settings."""
    return cells(context, _settings(setting, values))


def curves(context: StudyContext, setting: str, values: Sequence[Any]) -> pa.Table:
    """Deferral curves of CSCR with each value of one of its settings."""
    done = _measured(context, _settings(setting, values))
    return curve_table(done, "deferral", measure_of(context))


def descriptors(context: StudyContext) -> Sequence[StudyCell]:
    """CSCR with each kind of descriptors that all models have, and with kinds mixed."""
    every = context.core.descriptors
    kinds = sorted(every)
    rows = [kind for kind in kinds if not np.isnan(every[kind]).any()]
    if len({every[kind].shape[1] for kind in kinds}) == 1 and len(kinds) > 1:
        rows.append("mixed")
    return cells(
        context, {kind: {"router": "cscr", "preset": "text", "descriptor": kind} for kind in rows}
    )
