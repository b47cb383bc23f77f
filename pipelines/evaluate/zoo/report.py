"""What a run leaves behind: cells.parquet, standings.json and table.md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import BaseModel

from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.common.untrusted import short_text
from routeyard.pipelines.evaluate.zoo.run import NO_ENCODER, SINGLE, CellResult, Ranking, spread
from routeyard.schemas.contracts import RESULTS
from routeyard.schemas.errors import BadInput
from routeyard.schemas.text import markdown as shown

#: Bytes of a `zoo.json` of somebody else's: a row takes about a hundred.
_MOST = 10_000_000


class ZooRow(BaseModel):
    """A router with one encoder, as a release's card carries it."""

    router: str
    encoder: str
    mean: float
    sd: float
    seeds: int


class ZooResults(BaseModel):
    """The content of `zoo.json`."""

    data: str
    scheme: str
    rows: list[ZooRow]
    references: dict[str, float]


def cells_table(results: Sequence[CellResult]) -> pa.Table:
    """One row per cell that was fitted; table.md lists refusals with their reason."""
    rows = [{**asdict(r.cell), **asdict(r)} for r in results if r.reason is None]
    order = ("router", "encoder", "stage", "architecture", "seed")
    rows.sort(key=lambda row: [row[name] for name in order])
    return pa.Table.from_pylist(rows, schema=RESULTS["zoo_cells"])


def markdown(
    title: str,
    rankings: Mapping[tuple[str, str], Ranking],
    references: Mapping[str, float],
    refused: Mapping[tuple[str, str], str],
    notes: Sequence[str] = (),
    over_splits: Mapping[tuple[str, str], Sequence[float]] | None = None,
    *,
    leaks: bool = False,
    all_rows: bool = False,
) -> str:
    """The main table: accuracy in per cent, mean ± sd over seeds, per encoder and over them.

    Args:
        rankings: (router, encoder) → ranking.
        references: name → test accuracy of what is no router.
        refused: (router, encoder) → why.
        over_splits: as `Zoo` has them.
        leaks: whether test questions are in train, so that each figure is given twice.
        all_rows: whether the figure over all test questions comes first then, and orders rows.
    """
    encoders = sorted({encoder for _, encoder in rankings})
    clean = leaks and not all_rows
    routers = sorted(
        {router for router, _ in rankings}, key=lambda r: -overall(rankings, r, clean=clean)[0]
    )
    columns = _columns(rankings, encoders, over_splits or {}, leaks, all_rows)
    several = len([encoder for encoder in encoders if encoder != NO_ENCODER]) > 1
    if several:
        columns["mean ± sd over encoders"] = {
            r: _percent(*overall(rankings, r, clean=clean)) for r in routers
        }
    head = ["router", *columns, "seeds", "s per fit", "CPU s in all", "peak MB"]
    lines = [f"# {shown(title)}", "", *notes, "", _row(head), _row(["---"] * len(head))]
    for router in routers:
        figures = [column.get(router, "–") for column in columns.values()]
        lines.append(_row([router, *figures, *_effort(rankings, router)]))
    lines += ["", _row(["reference", "test accuracy"]), _row(["---", "---"])]
    lines += [_row([name, f"{100 * value:.2f}"]) for name, value in references.items()]
    top = [overall(rankings, router, clean=clean)[0] for router in routers[:5]]
    if top:
        over = "seeds and encoders" if several else "seeds"
        apart = f"{100 * (max(top) - min(top)):.2f} points between means over {over}"
        first = {5: "five"}.get(len(top), str(len(top)))
        lines += ["", f"Spread of the top {first} rows of this table: {apart}."]
    if refused:
        lines += ["", "Refused:", ""]
        lines += [
            f"- {shown(r)} with {shown(e)}: {shown(why)}" for (r, e), why in sorted(refused.items())
        ]
    return "\n".join(lines) + "\n"


def _columns(
    rankings: Mapping[tuple[str, str], Ranking],
    encoders: Sequence[str],
    over_splits: Mapping[tuple[str, str], Sequence[float]],
    leaks: bool,
    all_rows: bool,
) -> dict[str, dict[str, str]]:
    """Heading → router → its figure, with each encoder."""
    columns: dict[str, dict[str, str]] = {}
    single = np.array(over_splits.get((SINGLE, ""), ()))
    for encoder in encoders:
        own = {router: ranking for (router, name), ranking in rankings.items() if name == encoder}
        every = {
            router: _percent(item.mean, item.sd if item.seeds > 1 else None)
            for router, item in own.items()
        }
        clean = {r: f"{100 * item.clean:.2f}" for r, item in own.items() if item.clean is not None}
        both = {f"{encoder}, without leaked": clean, f"{encoder}, all rows": every}
        if leaks:
            columns |= dict(reversed(both.items())) if all_rows else both
        else:
            columns[encoder] = every
        again = {r: np.array(over_splits[r, encoder]) for r in own if (r, encoder) in over_splits}
        if again:
            columns[f"{encoder}, drawn splits (over the best single)"] = {
                router: f"{_report_spread(item)} ({_report_spread(item - single, sign='+')})"
                for router, item in again.items()
            }
    return columns


def _effort(rankings: Mapping[tuple[str, str], Ranking], router: str) -> list[str]:
    """What the fits of a router took."""
    own = [ranking for (name, _), ranking in rankings.items() if name == router]
    return [
        str(max(item.seeds for item in own)),
        f"{np.mean([item.fit_s for item in own]):.2f}",
        f"{sum(item.cpu_s for item in own):.1f}",
        f"{max(item.peak_mb for item in own):.0f}",
    ]


def _percent(mean: float, sd: float | None, sign: str = "-") -> str:
    return f"{100 * mean:{sign}.2f}" + ("" if sd is None else f" ± {100 * sd:.2f}")


def _report_spread(values: Floats, sign: str = "-") -> str:
    mean, sd = spread(values)
    return _percent(mean, sd if len(values) > 1 else None, sign)


def overall(
    rankings: Mapping[tuple[str, str], Ranking], router: str, *, clean: bool = False
) -> tuple[float, float]:
    """(mean, sd) over encoders of a router's means; sd 0 for one encoder.

    Args:
        clean: of the means without the test questions that are in train, where there are any.
    """
    own = [item for (name, _), item in sorted(rankings.items()) if name == router]
    means = [s.clean if clean and s.clean is not None else s.mean for s in own]
    return spread(means)


def standings_json(
    rankings: Mapping[tuple[str, str], Ranking],
    over_splits: Mapping[tuple[str, str], Sequence[float]] | None = None,
) -> list[dict[str, Any]]:
    return [
        {
            "router": router,
            "encoder": encoder,
            "architecture": result.winner.architecture,
            **{name: value for name, value in asdict(result).items() if name != "winner"},
            "over_splits": list((over_splits or {}).get((router, encoder), ())),
        }
        for (router, encoder), result in sorted(rankings.items())
    ]


def results_json(
    data: str,
    scheme: str,
    rankings: Mapping[tuple[str, str], Ranking],
    references: Mapping[str, float],
) -> dict[str, Any]:
    """What a release's card can carry: rows of the table, and the hash of what was measured.

    No seconds or megabytes: a card says nothing of the machine it was made on.
    """
    rows = [
        ZooRow(
            router=router, encoder=encoder, mean=round(s.mean, 6), sd=round(s.sd, 6), seeds=s.seeds
        )
        for (router, encoder), s in sorted(rankings.items())
    ]
    result = {name: round(value, 6) for name, value in references.items()}
    return ZooResults(data=data, scheme=scheme, rows=rows, references=result).model_dump()


def checked_results(named: str, folder: Path) -> str:
    """The text of a `zoo.json`, written shortly.

    Args:
        named: a path from `folder`, or the text itself.

    Raises:
        BadInput: it is missing, or is no report.
    """
    path = None if named.lstrip().startswith("{") else folder / named
    try:
        data = json.loads(named if path is None else short_text(path, _MOST))
        return json.dumps(ZooResults.model_validate(data).model_dump(), allow_nan=False)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise BadInput(
            f"this is no zoo.json: {type(error).__name__}: {error}",
            where=f"release.zoo: {path or 'text'}",
            next_step="`routeyard zoo run RELEASE --out zoo` writes zoo/zoo.json",
        ) from error


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(shown, cells)) + " |"
