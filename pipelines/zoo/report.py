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

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.io.untrusted import short_text
from routeyard.pipelines.zoo.protocol import NO_ENCODER, CellResult, Ranking
from routeyard.schemas.tables import RESULTS
from routeyard.schemas.untrusted_text import markdown as shown

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
) -> str:
    """The main table: accuracy in per cent, mean ± sd over seeds, per encoder and over them.

    Args:
        rankings: (router, encoder) → ranking.
        references: name → test accuracy of what is no router.
        refused: (router, encoder) → why.
    """
    encoders = sorted({encoder for _, encoder in rankings})
    routers = sorted({router for router, _ in rankings}, key=lambda r: -overall(rankings, r)[0])
    head = ["router", *encoders]
    several = len([encoder for encoder in encoders if encoder != NO_ENCODER]) > 1
    if several:
        head += ["mean ± sd over encoders"]
    head += ["seeds", "s per fit", "CPU s in all", "peak MB"]
    lines = [f"# {shown(title)}", "", *notes, "", _row(head), _row(["---"] * len(head))]
    lines += [_row(_router_row(rankings, router, encoders, several)) for router in routers]
    lines += ["", _row(["reference", "test accuracy"]), _row(["---", "---"])]
    lines += [_row([name, f"{100 * value:.2f}"]) for name, value in references.items()]
    top = [overall(rankings, router)[0] for router in routers[:5]]
    if top:
        over = "seeds and encoders" if several else "seeds"
        apart = f"{100 * (max(top) - min(top)):.2f} points between means over {over}"
        lines += ["", f"Spread of the top five rows of this table: {apart}."]
    if refused:
        lines += ["", "Refused:", ""]
        lines += [
            f"- {shown(r)} with {shown(e)}: {shown(why)}" for (r, e), why in sorted(refused.items())
        ]
    return "\n".join(lines) + "\n"


def _router_row(
    rankings: Mapping[tuple[str, str], Ranking], router: str, encoders: Sequence[str], several: bool
) -> list[str]:
    """Cells of one router: accuracy with each encoder, over several, and what it took."""
    found = [rankings.get((router, encoder)) for encoder in encoders]
    own = [one for one in found if one is not None]
    row = [router, *("–" if one is None else _percent(one.mean, one.sd) for one in found)]
    if several:
        row.append(_percent(*overall(rankings, router)))
    return [
        *row,
        str(max(one.seeds for one in own)),
        f"{np.mean([one.fit_s for one in own]):.2f}",
        f"{sum(one.cpu_s for one in own):.1f}",
        f"{max(one.peak_mb for one in own):.0f}",
    ]


def _percent(mean: float, sd: float) -> str:
    return f"{100 * mean:.2f} ± {100 * sd:.2f}"


def overall(rankings: Mapping[tuple[str, str], Ranking], router: str) -> tuple[float, float]:
    """(mean, sd) over encoders of a router's means; sd 0 for one encoder."""
    means = [s.mean for (name, _), s in sorted(rankings.items()) if name == router]
    return float(np.mean(means)), float(np.std(means, ddof=1)) if len(means) > 1 else 0.0


def standings_json(rankings: Mapping[tuple[str, str], Ranking]) -> list[dict[str, Any]]:
    return [
        {
            "router": router,
            "encoder": encoder,
            "architecture": found.winner.architecture,
            **{name: value for name, value in asdict(found).items() if name != "winner"},
        }
        for (router, encoder), found in sorted(rankings.items())
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
    found = {name: round(value, 6) for name, value in references.items()}
    return ZooResults(data=data, scheme=scheme, rows=rows, references=found).model_dump()


def checked_results(named: str, folder: Path) -> str:
    """The text of a `zoo.json`, written shortly.

    Args:
        named: a path from `folder`, or the text itself.

    Raises:
        BadInput: it is missing, or is none.
    """
    path = None if named.lstrip().startswith("{") else folder / named
    try:
        found = json.loads(named if path is None else short_text(path, _MOST))
        return json.dumps(ZooResults.model_validate(found).model_dump(), allow_nan=False)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise BadInput(
            f"this is no zoo.json: {type(error).__name__}: {error}",
            where=f"release.zoo: {path or 'text'}",
            next_step="`routeyard zoo run RELEASE --out zoo` writes zoo/zoo.json",
        ) from error


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(shown, cells)) + " |"
