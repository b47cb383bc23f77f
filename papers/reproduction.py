"""A paper's tables and figures computed on releases, each value beside the printed one.

A cell is `equal` or `differs` only where the release holds the paper's own data. On another one
the same code gives a value, which is shown, and the paper's cell stays `cannot be computed`, with
what is missing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.papers import PAPERS
from routeyard.papers.paper import Paper, PrintedCell, Verdict, verdict
from routeyard.pipelines.common.matrix import core_of
from routeyard.pipelines.evaluate.experiment import default_scheme
from routeyard.pipelines.evaluate.studies import STUDIES
from routeyard.pipelines.evaluate.studies.needs import lacking
from routeyard.pipelines.evaluate.studies.study import (
    Study,
    StudyCell,
    StudyContext,
    Unit,
    fed,
    leaks,
)
from routeyard.schemas.errors import BadInput

# The releases used for a paper's benchmarks, and whether they are the paper's own data.

#: Row and column of counts → how many.
Counts = Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class Stand:
    """The release used for a benchmark.

    Attributes:
        context: Its tables, as studies read them; of a release that is only tested on, those of
            the one that routers learn from, with the tested one beside it.
        unlike: Why it is not the paper's own data; empty where it is.
        whole: The tables of the tested release with all its questions, where `context` has a part.
    """

    context: StudyContext
    unlike: str = ""
    whole: Mapping[str, pa.Table] | None = None

    @property
    def release(self) -> str:
        """Name of the release that is measured on."""
        return next(iter(self.context.tested), self.context.release)

    @property
    def tables(self) -> Mapping[str, pa.Table]:
        """Tables of that release, with all its questions."""
        if self.whole is not None:
            return self.whole
        return next(iter(self.context.tested.values()), self.context.tables)

    def counts(self) -> dict[tuple[str, str], float]:
        """Questions per source and in all, parts of the split, models, tasks: of that release."""
        tables, context = self.tables, self.context
        core = context.core if tables is context.tables else core_of(tables)
        sources = Counter(tables["queries"].column("source").to_pylist())
        found = {(name, "questions"): float(n) for name, n in sources.items()}
        found["in all", "questions"] = float(sum(sources.values()))
        found["in all", "models"] = float(core.n_models)
        found["in all", "tasks"] = float(len(set(core.tasks.tolist())))
        if core.splits:
            split = core.splits[default_scheme(core, context.scheme)]
            for part in ("train", "validation", "test"):
                found["in all", part] = float(np.sum(split == part))
        return found


def same_release(one: Stand | None, other: Stand) -> bool:
    """Whether both are the same release, tested and trained alike."""
    if one is None:
        return False
    a, b = one.context, other.context
    return (a.release, tuple(a.tested), a.pair) == (b.release, tuple(b.tested), b.pair)


def prepared(paper: Paper, stand: Stand) -> Stand:
    """The release, with replacements from the paper's folder for the data that it lacks."""
    if not paper.prepare:
        return stand
    module, _, name = paper.prepare.partition(":")
    folder = PAPERS.targets[paper.name].partition(":")[0]
    found: Stand = getattr(import_module(f"{folder}.{module}"), name)(stand)
    return found


def simulated(models: pa.Table) -> bool:
    """Whether any model is simulated that is not there to be, as pseudo-specialists are."""
    return any(row["simulated"] and row["kind"] == "real" for row in models.to_pylist())


def alike(one: Stand, name: str, sizes: Mapping[str, int], release: str) -> Stand:
    """The release with its differences from the paper's data: its name, simulated models, sizes."""
    if release != one.release:
        learnt = one.context.release
        by = f" by routers of {learnt}" if learnt != one.release else ""
        return replace(one, unlike=f"computed on {one.release}{by} instead of {name}")
    if simulated(one.tables["models"]):
        return replace(one, unlike=f"models of {one.release} are simulated")
    found = one.counts() if sizes else {}
    for size, printed in sizes.items():
        if found.get(("in all", size)) != printed:
            has = found.get(("in all", size))
            said = "unknown" if has is None else f"{has:,.0f}"
            return replace(
                one, unlike=f"the paper's {name} has {printed:,} {size}, this one {said}"
            )
    return one


# A paper's studies on the releases used for its benchmarks, each computed once.


@dataclass(frozen=True)
class Computed:
    """A study on one benchmark: its cells and curves, or why they are missing.

    Attributes:
        unlike: What of the release it leaves out, as the paper does not; empty for nothing.
        notes: What a reader has to know of its figures.
    """

    study: Study
    release: str
    cells: Sequence[StudyCell] = ()
    curves: pa.Table | None = None
    reason: str = ""
    unlike: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ReproducedCell:
    """A printed value and ours.

    Attributes:
        item, where, row, column: Place in the paper.
        printed: As printed; `printed_value` in the scale of `value`.
        value, low, high: Ours with its 95 % interval; shares for percentages. None where the
            cell cannot be computed at all.
        on: Release or recipe that it was computed on.
        verdict: `equal`, `differs` or `cannot be computed`.
        reason: What is missing, or what was computed in its place.
    """

    item: str
    where: str
    row: str
    column: str
    unit: Unit
    printed: str
    printed_value: float
    value: float | None
    low: float | None
    high: float | None
    on: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True)
class ReproducedItem:
    """A table or figure: what was computed for it on each benchmark, and what was not.

    Attributes:
        made: Benchmark → name of the release it was computed on.
        missing: Benchmark → why not.
    """

    item: str
    where: str
    title: str
    study: str
    made: Mapping[str, str]
    missing: Mapping[str, str]


@dataclass(frozen=True)
class Reproduction:
    """Every table and figure of a paper, as far as the releases allow.

    Attributes:
        cells: Every printed value.
        items: Every table and figure, illustrations left out.
        studies: (study, benchmark) → what it came to.
        how: Options that the releases were named by; none where recipes were rehearsed.
    """

    paper: Paper
    cells: Sequence[ReproducedCell]
    items: Sequence[ReproducedItem]
    studies: Mapping[tuple[str, str], Computed]
    how: str = ""

    def summary(self) -> dict[str, int]:
        """How many cells are printed, computed, equal, different, and not to be had."""
        return {
            **_counts(self.cells),
            "tables and figures": len(self.items),
            "of which computed": sum(bool(item.made) for item in self.items),
        }


@dataclass
class Studies:
    """The studies of a paper on the releases used for its benchmarks, each made once.

    Attributes:
        stands: Benchmark → the release used for it.
        asked: Name of a recipe → the counts it asks for; None where there is no such recipe.
        on_progress: Told how many studies are done, of how many, and which one is begun.
        done: (study, benchmark) → what it came to.
    """

    paper: Paper
    stands: Mapping[str, Stand]
    asked: Callable[[str], Counts | None]
    on_progress: Callable[[int, int, str], None]
    done: dict[tuple[str, str], Computed] = field(default_factory=dict)
    made: int = 0

    def study(self, name: str, benchmark: str) -> Computed:
        """The study on the release used for the benchmark."""
        key = (name, benchmark)
        if key not in self.done:
            self.done[key] = self._computed(name, benchmark)
        return self.done[key]

    def _computed(self, name: str, benchmark: str) -> Computed:
        study: Study = STUDIES.get(name)
        stand = self.stands.get(benchmark)
        if stand is None:
            get = self.paper.benchmarks[benchmark].get
            return Computed(study, "", reason=f"{benchmark} is not here: {get}")
        # The same release may be used for several benchmarks.
        for (other, there), known in self.done.items():
            if other == name and same_release(self.stands.get(there), stand):
                return known
        context = stand.context
        if missing := lacking(study, context):
            need, then = missing[0]
            lacks = f"{stand.release} lacks {need}: {then}"
            return Computed(study, stand.release, reason=lacks)
        self.on_progress(self.made, self.wanted, f"{name} on {stand.release}")
        try:
            read, only = fed(study, context)
            return Computed(
                study,
                stand.release,
                study.cells(read),
                study.curves(read) if study.curves else None,
                unlike=f"on {only}" if only else "",
                notes=[one for one in (leaks(study, context),) if one],
            )
        except BadInput as error:
            return Computed(study, stand.release, reason=f"{stand.release}: {error.args[0]}")
        finally:
            self.made += 1

    @cached_property
    def wanted(self) -> int:
        """How many studies there are to compute, each once for a release."""
        found: set[tuple[str, int]] = set()
        for name, item in self.paper.items.items():
            for benchmark in self.paper.benchmarks_of(name) if item.study else ():
                stand = self.stands.get(benchmark)
                if stand and not lacking(STUDIES.get(item.study), stand.context):
                    found.add((item.study, self._first(stand)))
        return len(found)

    def _first(self, stand: Stand) -> int:
        """Place of the first entry that is the same release."""
        return next(k for k, one in enumerate(self.stands.values()) if same_release(one, stand))

    def counts(self, benchmark: str) -> tuple[str, Counts]:
        """(of what, counts) of the benchmark's release, or as its recipe asks for them."""
        stand = self.stands.get(benchmark)
        if stand is not None and not stand.unlike:
            return stand.release, stand.counts()
        name = self.paper.benchmarks[benchmark].release
        asked = self.asked(name)
        return ("", {}) if asked is None else (f"recipe {name}", asked)

    def _found(
        self, one: PrintedCell, row: str, computed: Computed, stand: Stand | None
    ) -> tuple[StudyCell | None, str]:
        """The cell of the study; for a replacement also which data replace which."""
        cells = {(cell.row, cell.column): cell for cell in computed.cells}
        own = cells.get((row, one.study_column))
        instead = self.paper.benchmarks[one.on].instead
        if own is not None or stand is None or not stand.unlike or not instead:
            return own, ""
        used: dict[str, str] = {}

        def other(word: re.Match[str]) -> str:
            used[word[0]] = instead[word[0]]
            return instead[word[0]]

        words = re.compile(rf"\b({'|'.join(map(re.escape, instead))})\b")
        place = (words.sub(other, row), words.sub(other, one.study_column))
        taken = ", ".join(f"{new} in the place of {old}" for old, new in used.items())
        return cells.get(place), f", {taken}" if taken else ""

    def _absent(self, one: PrintedCell, row: str, computed: Computed) -> str:
        """What a release lacks whose study has no such cell."""
        lacks = self.paper.without.get(row.partition(":")[0])
        if any(cell.row == row for cell in computed.cells):
            return f"{computed.release} has nothing for the column {one.study_column!r}"
        if lacks:
            return f"{computed.release} lacks {lacks}"
        return f"{computed.release} has no row {row!r}"

    @staticmethod
    def _empty(computed: Computed) -> str:
        """Why a study came to nothing: what it notes where it has no value; empty where it has."""
        if any(cell.value is not None or cell.text for cell in computed.cells):
            return ""
        notes = dict.fromkeys(cell.note for cell in computed.cells if cell.note)
        return f"{computed.release}: {'; '.join(notes) or 'nothing was measured'}"

    def cell(self, one: PrintedCell) -> ReproducedCell:
        item = self.paper.items[one.item]
        if item.counts:
            on, found = self.counts(one.on)
            value = found.get((one.study_row, one.study_column))
            ours = None if value is None else StudyCell(one.row, one.column, value, "count")
            gone = "" if ours else f"{one.on} is not here: {self.paper.benchmarks[one.on].get}"
            return self._told(one, ours, on, gone, own=True)
        if not item.study:
            return self._told(one, None, "", item.lacks, own=False)
        computed = self.study(item.study, one.on)
        row = computed.release if one.study_row == "{release}" else one.study_row
        stand = self.stands.get(one.on)
        ours, taken = self._found(one, row, computed, stand)
        reason = computed.reason
        if not reason and ours is None:
            reason = self._absent(one, row, computed)
        elif not reason and ours is not None and ours.value is None:
            reason = f"{computed.release}: {ours.note or 'not measured'}"
        elif not reason and stand is not None:
            reason = ", ".join(filter(None, (stand.unlike, computed.unlike))) + taken
        return self._told(
            one, ours, computed.release, reason,
            own=stand is not None and not stand.unlike and not computed.unlike,
        )  # fmt: skip

    def _told(
        self, one: PrintedCell, ours: StudyCell | None, on: str, reason: str, *, own: bool
    ) -> ReproducedCell:
        known = ours is not None and ours.value is not None
        found = verdict(one.printed, ours, own)
        if found == "differs":
            reason = self.paper.items[one.item].remark or "not explained"
        return ReproducedCell(
            one.item, self.paper.items[one.item].where, one.row, one.column, one.unit,
            one.printed.text, one.printed.value,
            ours.value if ours else None, ours.low if ours else None, ours.high if ours else None,
            on if known else "", found, reason,
        )  # fmt: skip

    def derived(self, one: PrintedCell, row: Sequence[ReproducedCell]) -> ReproducedCell:
        """The mean over the other columns of a row; of the same verdict where one is missing."""
        known = [cell.value for cell in row if cell.value is not None]
        lacks = [cell for cell in row if cell.verdict == "cannot be computed"]
        ours = None
        if known and len(known) == len(row):
            ours = StudyCell(one.row, one.column, float(np.mean(known)))
        on = ", ".join(dict.fromkeys(cell.on for cell in row if cell.on))
        reason = ""
        if lacks:
            without = next((cell.column for cell in row if cell.value is None), None)
            reason = f"a mean over columns, of which {without} is missing"
            reason = lacks[0].reason if without is None else reason
        return self._told(one, ours, on, reason, own=not lacks)

    def item(self, name: str) -> tuple[list[ReproducedCell], ReproducedItem]:
        item = self.paper.items[name]
        cells: list[ReproducedCell] = []
        for one in self.paper.cells(name):
            if one.derived:
                row = [cell for cell in cells if cell.row == one.row]
                cells.append(self.derived(one, row))
            else:
                cells.append(self.cell(one))
        made, missing = {}, {}
        for benchmark in self.paper.benchmarks_of(name):
            if item.counts:
                on, found = self.counts(benchmark)
                reason = "" if found else f"not here: {self.paper.benchmarks[benchmark].get}"
            elif not item.study:
                on, reason = "", item.lacks
            else:
                computed = self.study(item.study, benchmark)
                on, reason = computed.release, computed.reason or self._empty(computed)
            if reason:
                missing[benchmark] = reason
            else:
                made[benchmark] = on
        return cells, ReproducedItem(name, item.where, item.title, item.study, made, missing)


def reproduction(
    paper: Paper,
    stands: Mapping[str, Stand],
    *,
    asked: Callable[[str], Counts | None] = lambda name: None,
    on_progress: Callable[[int, int, str], None] = lambda done, wanted, said: None,
) -> Reproduction:
    """Every printed value of a paper beside what its study gives on the benchmark's release.

    Args:
        stands: Benchmark → the release used for it; what is not there is missing.
        asked: Name of a recipe → the counts it asks for; None where there is no such recipe.
        on_progress: Told how many studies are done, of how many, and which one is begun.
    """
    run = Studies(paper, stands, asked, on_progress)
    cells, items = [], []
    for name, item in paper.items.items():
        if not item.drawing:
            own, found = run.item(name)
            cells += own
            items.append(found)
    on_progress(run.wanted, run.wanted, "")
    return Reproduction(paper, cells, items, run.done)


# How many of a paper's values are printed, computed, equal, different, not to be had, and why.

VERDICTS: Sequence[Verdict] = ("equal", "differs", "cannot be computed")
#: Headings of the counts, in order.
COUNTS = ("printed", "computed", *VERDICTS)


def tally(found: Reproduction) -> list[dict[str, Any]]:
    """Each table and figure, then `in all`: item, title, the counts, and the reasons.

    `differs because` and `cannot because` are lists of `reason`, `cells`, most cells first.
    `computed` counts every value, also on other data than the paper's, whose cell stays
    `cannot be computed`. A figure prints no values; `drawn` says whether it was computed.
    """

    def row(name: str, title: str, drawn: bool, cells: Sequence[ReproducedCell]) -> dict[str, Any]:
        return {
            "item": name, "title": title, "drawn": drawn, **_counts(cells),
            "differs because": _reasons(cells, "differs"),
            "cannot because": _reasons(cells, "cannot be computed"),
        }  # fmt: skip

    rows = [
        row(one.item, one.title, bool(one.made), [c for c in found.cells if c.item == one.item])
        for one in found.items
    ]
    drawn = any(one["drawn"] for one in rows)
    return [*rows, row("in all", found.paper.title, drawn, found.cells)]


def _counts(cells: Sequence[ReproducedCell]) -> dict[str, int]:
    """How many cells are printed, computed, and of each verdict: `COUNTS`."""
    verdicts = Counter(cell.verdict for cell in cells)
    found = (len(cells), sum(cell.value is not None for cell in cells))
    return dict(zip(COUNTS, (*found, *(verdicts[one] for one in VERDICTS)), strict=True))


def _reasons(cells: Iterable[ReproducedCell], wanted: Verdict) -> list[dict[str, Any]]:
    found = Counter(cell.reason for cell in cells if cell.verdict == wanted)
    return [{"reason": reason, "cells": n} for reason, n in found.most_common()]
