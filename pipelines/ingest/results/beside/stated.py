"""Figures of whole arms that a source states beside its rows, compared with the rows."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from routeyard.pipelines.ingest.results.arms import Assigned
from routeyard.pipelines.ingest.results.values import ReadingNote, factor, numbers, plain, texts
from routeyard.pipelines.model_names import same_model

#: Kind of a figure → how its column is called, without case and signs.
_CALLED = {
    "accuracy": re.compile(
        r"(?:avg|average|mean|overall|final|total|benchmark)?(?:reward|score|accuracy|acc|passrate|"
        r"pass1|passat1|resolv(?:ed)?rate|successrate|solverate|exactmatch|em)(?:percent|pct)?"
    ),
    "mean_cost": re.compile(
        r"(?:avg|average|mean)(?:instance|question|query|task|sample)?cost(?:usd)?|"
        r"(?:avg|average|mean)?costper(?:instance|question|query|task|sample|case|example)(?:usd)?|"
        r"priceper(?:instance|question|query|task|sample|case|example)"
    ),
    "total_cost": re.compile(r"(?:total|sum|overall|run)costs?(?:usd)?|costs?(?:usd)?total"),
}
_WORDS = {"accuracy": "accuracy", "mean_cost": "mean cost", "total_cost": "total cost"}
_SHOWN = 3
#: Relative difference of a cost that rounding does not explain.
_COST = 0.01


@dataclass(frozen=True, slots=True)
class StatedFigure:
    """One figure of an arm: its kind, value, and the column that states it."""

    arm: str
    kind: str
    value: float
    column: str


def figures_of(done: Assigned, columns: Sequence[str]) -> set[StatedFigure]:
    """Figures of whole arms in these columns; without a column of the arm none."""
    table, arm = done.table, done.roles.get("arm")
    found: set[StatedFigure] = set()
    if arm is None or arm not in table.column_names:
        return found
    names = texts(table.column(arm)).to_pylist()
    for column in columns:
        leaf = plain(column.rpartition(".")[2])
        kind = next((k for k, called in _CALLED.items() if called.fullmatch(leaf)), None)
        values = None if kind is None else numbers(table.column(column))
        if kind is None or values is None:
            continue
        values = values * (factor(column, "cost") if "cost" in kind else 1.0)
        found |= {
            StatedFigure(name, kind, float(value), column.removeprefix("(name)."))
            for name, value in zip(names, values, strict=True)
            if name and not np.isnan(value)
        }
    return found


def stated_notes(figures: set[StatedFigure], table: pa.Table) -> Iterator[ReadingNote]:
    """Stated figures that the rows contradict; an arm with several figures of a kind is left out.

    Args:
        table: The recording of all rows.
    """
    by_kind: dict[str, dict[str, list[StatedFigure]]] = defaultdict(lambda: defaultdict(list))
    for one in figures:
        by_kind[one.kind][one.arm].append(one)
    if not by_kind:
        return
    ours = _of_rows(table)
    for kind, arms in sorted(by_kind.items()):
        off, compared = [], 0
        for arm, said in sorted(arms.items()):
            names = [name for name in ours if name == arm or same_model(name, arm)]
            if len(said) != 1 or len(names) != 1 or not (mine := ours[names[0]].get(kind)):
                continue
            compared += 1
            if not any(_agree(said[0], value) for value in mine):
                off.append(f"{arm}: {said[0].value:g} stated, {mine[0]:.6g} over its rows")
        if off:
            words = "; ".join(off[:_SHOWN]) + (f"; and {len(off) - 3} more" if len(off) > 3 else "")
            column = next(iter(arms.values()))[0].column
            says = (
                f"{column!r} states another {_WORDS[kind]} than the rows give for {len(off)} of "
                f"{compared} arms ({words})"
            )
            yield ReadingNote("figures", says, len(off), (), column)


def _of_rows(table: pa.Table) -> dict[str, dict[str, list[float]]]:
    """Arm → kind of figure → values that the rows give, missing ones left out or as zeros."""
    coded = table.column("arm").combine_chunks().dictionary_encode()
    arm = np.asarray(coded.indices.fill_null(-1))
    found: dict[str, dict[str, list[float]]] = {}
    score, cost = (
        table.column(name).to_numpy(zero_copy_only=False) for name in ("score", "cost_usd")
    )
    questions = table.column("question").dictionary_encode().combine_chunks()
    everything = len(questions.dictionary)
    for code, name in enumerate(coded.dictionary.to_pylist()):
        mine = arm == code
        own, paid = score[mine], cost[mine]
        own, paid = own[~np.isnan(own)], paid[~np.isnan(paid)]
        found[name] = {}
        if len(own):
            found[name]["accuracy"] = [own.mean(), own.sum() / max(mine.sum(), everything)]
        if len(paid) and len(paid) == mine.sum():
            found[name]["mean_cost"], found[name]["total_cost"] = [paid.mean()], [paid.sum()]
    return found


def _agree(said: StatedFigure, ours: float) -> bool:
    """Whether a figure is ours, give or take the rounding it is written with."""
    if said.kind != "accuracy":
        return abs(said.value - ours) <= _COST * max(abs(ours), 1e-9) + _half_place(said.value)
    percent = abs(100 * ours - said.value) <= _half_place(said.value)
    return percent or abs(ours - said.value) <= _half_place(said.value)


def _half_place(value: float) -> float:
    """Half of the last decimal place of a number as it is written, at least 5e-5."""
    places = min(len(repr(value).partition(".")[2].rstrip("0")), 4)
    return 0.505 * 10.0 ** -max(places, 1)
