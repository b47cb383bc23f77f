"""What a run leaves behind: cells.parquet, standings.json and table.md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel

from routeyard.pipelines.common.arrays import Floats
from routeyard.pipelines.common.matrix import Core
from routeyard.pipelines.common.untrusted import short_text
from routeyard.pipelines.evaluate.metrics.selection import (
    at_choice,
    best,
    hard_subset,
    oracle_gap,
    query_oracle,
    selection_profile,
    solvable,
)
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
        own = {router: one for (router, name), one in rankings.items() if name == encoder}
        every = {
            router: _percent(one.mean, one.sd if one.seeds > 1 else None)
            for router, one in own.items()
        }
        clean = {r: f"{100 * one.clean:.2f}" for r, one in own.items() if one.clean is not None}
        both = {f"{encoder}, without leaked": clean, f"{encoder}, all rows": every}
        if leaks:
            columns |= dict(reversed(both.items())) if all_rows else both
        else:
            columns[encoder] = every
        again = {r: np.array(over_splits[r, encoder]) for r in own if (r, encoder) in over_splits}
        if again:
            columns[f"{encoder}, drawn splits (over the best single)"] = {
                router: f"{_report_spread(one)} ({_report_spread(one - single, sign='+')})"
                for router, one in again.items()
            }
    return columns


def _effort(rankings: Mapping[tuple[str, str], Ranking], router: str) -> list[str]:
    """What the fits of a router took."""
    own = [one for (name, _), one in rankings.items() if name == router]
    return [
        str(max(one.seeds for one in own)),
        f"{np.mean([one.fit_s for one in own]):.2f}",
        f"{sum(one.cpu_s for one in own):.1f}",
        f"{max(one.peak_mb for one in own):.0f}",
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
    own = [one for (name, _), one in sorted(rankings.items()) if name == router]
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
            "architecture": found.winner.architecture,
            **{name: value for name, value in asdict(found).items() if name != "winner"},
            "over_splits": list((over_splits or {}).get((router, encoder), ())),
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
        BadInput: it is missing, or is no report.
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


# What the plateau study found, looked for in one run: each fact with its figure, held or not.
#
# arXiv 2606.07587: kNN is in the top tier and the first five are close (section 4.1,
# Table 1); selections collapse onto a few models, on hard questions as on all (section
# 5.1, Figure 4); most of the gap to the oracle is on hard questions (Table 3).

#: Most points between the first and the fifth router (the study's largest is 0.52).
SPREAD = 0.6
#: Models on which a selection counts as collapsed, and the least share they then take.
FEW, MOST = 3, 0.75
#: Routers that choose without looking at the question: no part of the study's table.
BLIND = ("best-generalist", "random")


@dataclass(frozen=True)
class Fact:
    """`holds`: None where the run cannot tell; `says`: the figure behind it."""

    name: str
    holds: bool | None
    says: str


def facts(
    test: Core, train: Core, scores: Mapping[str, NDArray[np.float32]], order: NDArray[np.int64]
) -> list[Fact]:
    """The four facts on test questions that have a label.

    Args:
        test: as the scores were made: its labelled test questions.
        train: says which single model is best.
        scores: router → (n, m) of its chosen setting.
        order: (m,) models; the first of it wins a tie of scores.

    Raises:
        BadInput: nothing says which fractional labels are right.
    """
    correct = test.decided
    can = ~np.isnan(test.labels)
    chosen = {
        name: best(one.astype(np.float64), can, order)
        for name, one in scores.items()
        if name not in BLIND
    }
    hit = {name: at_choice(test.labels, choice) for name, choice in chosen.items()}
    places = sorted(hit, key=lambda name: -float(hit[name].mean()))
    if len(places) < 2:
        return []
    top = int(np.nanargmax(np.nanmean(train.labels, axis=0)))
    hard = hard_subset(correct, top)
    return [
        _knn(hit, places),
        _facts_spread(hit, places),
        _collapse(chosen, hard, correct, test.n_models),
        _gap(test.labels, correct, chosen, top, hard),
    ]


def _knn(hit: Mapping[str, NDArray[np.float64]], order: list[str]) -> Fact:
    name = "kNN in the top tier"
    if "knn" not in hit:
        return Fact(name, None, "kNN did not run")
    behind = hit[order[0]] - hit["knn"]
    error = float(behind.std(ddof=1) / np.sqrt(len(behind)))
    says = (
        f"rank {order.index('knn') + 1} of {len(order)}, {100 * behind.mean():.2f} ± "
        f"{100 * error:.2f} points behind {order[0]} (paired standard error)"
    )
    return Fact(name, bool(behind.mean() <= 2 * error), says)


def _facts_spread(hit: Mapping[str, NDArray[np.float64]], order: list[str]) -> Fact:
    name = f"top five within {SPREAD} points"
    if len(order) < 5:
        return Fact(name, None, f"only {len(order)} routers ran")
    first, fifth = hit[order[0]], hit[order[4]]
    gap = first - fifth
    error = float(gap.std(ddof=1) / np.sqrt(len(gap)))
    says = (
        f"{100 * gap.mean():.2f} ± {100 * error:.2f} points from {order[0]} to {order[4]} (one fit "
        "of each winner, routers that look at the question; ± over test questions)"
    )
    return Fact(name, bool(100 * gap.mean() <= SPREAD), says)


def _collapse(
    chosen: Mapping[str, NDArray[np.int64]], hard: NDArray[np.bool_], correct: NDArray[np.float64],
    n_models: int,
) -> Fact:  # fmt: skip
    name = f"choices collapse onto {FEW} models, on hard questions too"
    if n_models <= FEW:
        return Fact(name, None, f"the pool has {n_models} models")
    if not hard.any():
        return Fact(name, None, "no question is hard")
    whole, part = [], []
    for choice in chosen.values():
        profile = selection_profile(choice, n_models)
        few = np.argsort(-profile, kind="stable")[:FEW]
        whole.append(float(profile[few].sum()))
        part.append(float(selection_profile(choice[hard], n_models)[few].sum()))
    truth = selection_profile(query_oracle(correct)[hard], n_models)
    says = (
        f"the three models a router asks most get {np.median(whole):.0%} of all and "
        f"{np.median(part):.0%} of hard questions (median of {len(chosen)} routers); the three "
        f"that are right on most hard ones, {np.sort(truth)[::-1][:FEW].sum():.0%}"
    )
    return Fact(name, bool(np.median(whole) >= MOST and np.median(part) >= MOST), says)


def _gap(
    labels: NDArray[np.float64], correct: NDArray[np.float64],
    chosen: Mapping[str, NDArray[np.int64]], top: int, hard: NDArray[np.bool_],
) -> Fact:  # fmt: skip
    name = "most of the oracle gap on hard questions"
    shares = [
        found.share_explained
        for found in (oracle_gap(labels, choice, top, correct) for choice in chosen.values())
        if found.share_explained is not None
    ]
    if not shares:
        return Fact(name, None, "there is no gap")
    says = (
        f"{np.median(shares):.1%} of it (median; {min(shares):.1%} to {max(shares):.1%}) on "
        f"{hard.mean():.1%} of the questions; {1 - solvable(correct).mean():.1%} no model solves"
    )
    return Fact(name, bool(np.median(shares) > 0.5), says)


def lines(found: list[Fact]) -> list[str]:
    """The facts as a Markdown list."""
    word = {True: "holds", False: "does not hold", None: "cannot be told"}
    return [f"- {fact.name}: {word[fact.holds]}; {fact.says}." for fact in found]
