"""A paper's tables and figures computed on releases, each value beside the printed one.

A cell is `equal` or `differs` only where the release holds the paper's own data. On another one
the same code gives a value, which is shown, and the paper's cell stays `cannot be computed`, with
what is missing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from routeyard.papers.computed import Computed, Studies
from routeyard.papers.paper import Paper, PrintedCell
from routeyard.papers.printed import Verdict, verdict
from routeyard.papers.stands import Counts, Stand
from routeyard.pipelines.studies.study import StudyCell, Unit


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
        found = Counter(cell.verdict for cell in self.cells)
        return {
            "printed": len(self.cells),
            "computed": sum(cell.value is not None for cell in self.cells),
            "equal": found["equal"],
            "differs": found["differs"],
            "cannot be computed": found["cannot be computed"],
            "tables and figures": len(self.items),
            "of which computed": sum(bool(item.made) for item in self.items),
        }


@dataclass
class _Cells:
    """The printed cells of a paper beside what its studies come to."""

    run: Studies

    @property
    def paper(self) -> Paper:
        return self.run.paper

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
            on, found = self.run.counts(one.on)
            value = found.get((one.study_row, one.study_column))
            ours = None if value is None else StudyCell(one.row, one.column, value, "count")
            gone = "" if ours else f"{one.on} is not here: {self.paper.benchmarks[one.on].get}"
            return self._told(one, ours, on, gone, own=True)
        if not item.study:
            return self._told(one, None, "", item.lacks, own=False)
        computed = self.run.study(item.study, one.on)
        row = computed.release if one.study_row == "{release}" else one.study_row
        stand = self.run.stands.get(one.on)
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
                on, found = self.run.counts(benchmark)
                reason = "" if found else f"not here: {self.paper.benchmarks[benchmark].get}"
            elif not item.study:
                on, reason = "", item.lacks
            else:
                computed = self.run.study(item.study, benchmark)
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
    made = _Cells(run)
    cells, items = [], []
    for name, item in paper.items.items():
        if not item.drawing:
            own, found = made.item(name)
            cells += own
            items.append(found)
    on_progress(run.wanted, run.wanted, "")
    return Reproduction(paper, cells, items, run.done)
