"""Ablations of CSCR: descriptors, loss, bands, neighbours, penalty, temperatures, size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.evaluate.papers.spectrum import at_peak
from pipelines.evaluate.run import Evaluation
from pipelines.routers import ROUTERS
from pipelines.routers.base import Router
from pipelines.studies.context import StudyContext
from pipelines.studies.cscr import NEEDS, OURS, PAPER, curve_table, deferral_columns
from pipelines.studies.router_table import cells_of, measure_of
from pipelines.studies.study import Study, StudyCell

#: Row → (router, its settings).
Rows = Mapping[str, tuple[str, Mapping[str, Any]]]


def _made(name: str, setting: Mapping[str, Any], seed: int) -> Router:
    router: Router = ROUTERS.get(name)(seed=seed, **setting)
    return router


def _measured(context: StudyContext, rows: Rows) -> Evaluation:
    makers = {label: partial(_made, *which) for label, which in rows.items()}
    return context.once(("cscr", tuple(rows)), lambda: context.compared(makers))


def _cells(context: StudyContext, rows: Rows) -> Sequence[StudyCell]:
    done, measure = _measured(context, rows), measure_of(context)
    cells = cells_of(done, deferral_columns(context), list(rows))
    curves = curve_table(done, measure).to_pylist()
    for label in rows:
        points = np.array([[r["x"], r["y"]] for r in curves if r["series"] == label])
        cells.append(StudyCell(label, "cost at peak", at_peak(points), "number"))
    return cells


def _settings(setting: str, values: Sequence[Any]) -> Rows:
    return {f"{setting}={value:g}": ("cscr", {setting: value}) for value in values}


def _over(setting: str, values: Sequence[Any]) -> Callable[[StudyContext], Sequence[StudyCell]]:
    return partial(_cells, rows=_settings(setting, values))


def _drawn(context: StudyContext, rows: Rows) -> pa.Table:
    return curve_table(_measured(context, rows), measure_of(context))


def _study(name: str, item: str, title: str, cells: Any, *notes: str) -> Study:
    return Study(
        name=name,
        paper=PAPER,
        item=item,
        title=title,
        cells=cells,
        needs=NEEDS,
        rows="CSCR with",
        plot="bars",
        plot_column="AUDC",
        notes=(OURS, *notes),
    )


def _descriptors(context: StudyContext) -> Sequence[StudyCell]:
    kinds = sorted(context.core.descriptors)
    rows: dict[str, tuple[str, Mapping[str, Any]]] = {
        kind: ("cscr", {"descriptor": kind})
        for kind in kinds
        if not np.isnan(context.core.descriptors[kind]).any()
    }
    if len({context.core.descriptors[kind].shape[1] for kind in kinds}) == 1 and len(kinds) > 1:
        rows["mixed"] = ("cscr", {"descriptor": "mixed"})
    return _cells(context, rows)


DESCRIPTORS = _study(
    "cscr_descriptors", "Table 4", "Kinds of descriptors", _descriptors,
    "Mixed takes for each model the first kind it has; kinds share a space when as long. The "
    "paper's mixture needs a file in which some models have one kind and the others another.",
)  # fmt: skip
LOSS = _study(
    "cscr_loss", "Table 5", "Plain InfoNCE against the cost spectrum, text and published code",
    partial(
        _cells,
        rows={
            "contrastive (equation 6)": ("contrastive", {}),
            "cscr (equation 8)": ("cscr", {}),
            "cscr, penalty outside (appendix B.3)": ("cscr", {"penalty": "outside"}),
            "cscr, cheapest positive (abstract)": ("cscr", {"positives": "cheapest"}),
            "cscr, published code": ("cscr", {"as_published": True}),
            "cscr, published code with k = 4": ("cscr", {"as_published": True, "k": 4}),
        },
    ),
)  # fmt: skip
BANDED = _study(
    "cscr_banded", "Table 7", "With and without cost bands", _over("bands", (1, 5)),
    "One band has one temperature, τ_min + α·mean cost, and keeps γ.",
)  # fmt: skip
COUNTS = _settings("bands", (2, 5, 11, 15, 20))
BANDS = replace(
    _study(
        "cscr_band_count", "Table 8, Figures 6, 7", "Number of cost bands",
        partial(_cells, rows=COUNTS), "A pool of fewer models than bands leaves bands empty.",
    ),
    plot="lines", plot_column=None, curves=partial(_drawn, rows=COUNTS),
    axes=("mean cost", "accuracy"),
)  # fmt: skip
NEIGHBOURS = _study(
    "cscr_neighbours", "Table 9", "Number of nearest descriptors before cost decides",
    _over("k", (1, 2, 4, 8, 16)),
)  # fmt: skip
PENALTY = _study(
    "cscr_penalty", "Table 10", "Penalty γ on the cost of negatives",
    _over("gamma", (0.0, 0.1, 0.2, 0.3, 0.5)),
    "As printed, −γ·c lowers the share of dear models in the denominator.",
)  # fmt: skip
SLOPE = _study(
    "cscr_slope", "Table 11", "Slope α of the bands' temperatures",
    _over("slope", (0.0, 0.1, 0.25, 0.4, 0.5)),
)  # fmt: skip
LEAST = _study(
    "cscr_least_temperature", "Table 12", "Temperature τ_min of the cheapest band",
    _over("least", (0.005, 0.02, 0.05, 0.08)),
    "τ_min = 0, the paper's first row, divides by zero in the band whose mean cost is 0: 0.005 "
    "stands in its place.",
)  # fmt: skip
SIZE = _study(
    "cscr_size", "Table 13", "Width of the router's middle layer", _over("width", (1.0, 4.0))
)
