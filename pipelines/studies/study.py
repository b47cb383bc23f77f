"""What a study is: a name, a paper's item, what it needs, and how its cells are filled."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from routeyard.schemas.tables import RESULTS

if TYPE_CHECKING:
    from routeyard.pipelines.studies.context import StudyContext

#: How a value is shown: a share in percent, a difference of shares in percentage points,
#: a whole number, or a number as it is.
Unit = Literal["percent", "points", "count", "number"]


@dataclass(frozen=True, slots=True)
class StudyCell:
    """One cell: a value with its 95 % interval, or a text.

    Attributes:
        row, column: Headings; the tables show them in order of appearance.
        value: In the unit's own scale: a share for `percent` and `points`, never times 100.
        low, high: 95 % interval; None where the value has none.
        text: Shown instead of a value (a model's name).
        note: Why the value is null, or how it is to be read.
    """

    row: str
    column: str
    value: float | None = None
    unit: Unit = "number"
    low: float | None = None
    high: float | None = None
    text: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """A table or a figure of a paper, for any release that has what it needs.

    Attributes:
        name: As in `routeyard study NAME`.
        paper: Short name of the paper, as other studies of it write it; `routeyard` for our own.
        item: `Table 2`, `Figure 4`, several divided by commas.
        title: What it shows, in our words.
        cells: Fills the table from the context; the figures are computed in other packages.
        needs: Names from `needs.NEEDS`, and `router:<name>`.
        takes: What of a context beside the release it reads: `routers` that are asked for, releases
            that are `joined` or `tested`. Anything else is refused when it is given.
        rows: Heading of the first column.
        plot: `bars` of the column `plot_column` over rows (`dots` where zero is nothing), `heat`
            of rows and columns, or `lines` or `points` of `curves`; of `points` only references
            are joined.
        curves: For `lines`, `points`: the table of curves (`series`, `x`, `y`, `low`, `high`).
        printed: Release name → (row, column) → the value that the paper prints for those data,
            in the scale of `StudyCell.value` (67.37 % is 0.6737).
        notes: How it is measured where the paper leaves a choice.
        printed_notes: What differs between the paper's data and ours, shown beside its values.
    """

    name: str
    paper: str
    item: str
    title: str
    cells: Callable[[StudyContext], Sequence[StudyCell]]
    needs: tuple[str, ...] = ("labels",)
    takes: tuple[str, ...] = ("routers",)
    rows: str = "model"
    plot: Literal["bars", "dots", "heat", "lines", "points"] | None = None
    plot_column: str | None = None
    curves: Callable[[StudyContext], pa.Table] | None = None
    axes: tuple[str, str] = ("", "")
    printed: Mapping[str, Mapping[tuple[str, str], float]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    printed_notes: Sequence[str] = ()


def table_of(study: Study, cells: Sequence[StudyCell], release: str) -> pa.Table:
    """Cells of a study, the paper's printed values beside those of the same data."""
    printed = dict(study.printed.get(release, {}))
    rows = [
        {
            **asdict(cell),
            "value": _finite(cell.value),
            "low": _finite(cell.low),
            "high": _finite(cell.high),
            "printed": printed.pop((cell.row, cell.column), None),
        }
        for cell in cells
    ]
    # What the paper prints of the same data and this release has no row for is reported as well.
    rows += [
        {**asdict(StudyCell(*where, note="printed only")), "printed": value}
        for where, value in printed.items()
    ]
    return pa.Table.from_pylist(rows, schema=RESULTS["study_cells"])


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
