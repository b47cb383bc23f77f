"""A paper's tables and figures computed on releases, each value beside the printed one.

A cell is `equal` or `differs` only where the release holds the paper's own data. On another one
the same code gives a value, which is shown, and the paper's cell stays `not comparable`, with
what is missing.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.extensions.tuning.encoder import TuningSettings
from routeyard.extensions.tuning.tune import Grid, read, tune
from routeyard.flows.cli.options import CACHE, plain
from routeyard.flows.console import counter, line
from routeyard.flows.evaluation.evaluate import context_of, named, store_in, write_study
from routeyard.flows.evaluation.released import (
    Tables,
    out_folder,
    read_with,
    vectors,
    with_beside,
    with_embeddings,
)
from routeyard.flows.evaluation.zoo import measured, run
from routeyard.flows.recipe import find, load, read_yaml, shipped
from routeyard.papers import PAPERS
from routeyard.papers.paper import Paper, PrintedCell, SmallTuning, Verdict, verdict
from routeyard.pipelines.common import encoders
from routeyard.pipelines.common.arrays import Vectors, single_means
from routeyard.pipelines.common.encoders import NAME as TFIDF
from routeyard.pipelines.common.matrix import Core, core_of
from routeyard.pipelines.common.staging import place, staging, write_text
from routeyard.pipelines.evaluate.experiment import default_scheme, registered
from routeyard.pipelines.evaluate.fit import CellInputs
from routeyard.pipelines.evaluate.results import default_pair
from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.evaluate.settings import FIRST_SEED, EvaluationSettings
from routeyard.pipelines.evaluate.studies import STUDIES
from routeyard.pipelines.evaluate.studies.study import (
    Study,
    StudyCell,
    StudyContext,
    Unit,
    ZooFigures,
    context_for,
    lacking,
    leaks,
)
from routeyard.pipelines.evaluate.zoo import run as zoo
from routeyard.pipelines.evaluate.zoo.report import cells_table
from routeyard.schemas.errors import BadInput, RouteyardError
from routeyard.schemas.recipe import ENCODER

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
        result = {(name, "questions"): float(n) for name, n in sources.items()}
        result["in all", "questions"] = float(sum(sources.values()))
        result["in all", "models"] = float(core.n_models)
        result["in all", "tasks"] = float(len(set(core.tasks.tolist())))
        if core.splits:
            split = core.splits[default_scheme(core, context.scheme)]
            for part in ("train", "validation", "test"):
                result["in all", part] = float(np.sum(split == part))
        return result


def same_release(stand: Stand | None, other: Stand) -> bool:
    """Whether both are the same release, tested and trained alike."""
    if stand is None:
        return False
    a, b = stand.context, other.context
    return (a.release, tuple(a.tested), a.pair) == (b.release, tuple(b.tested), b.pair)


def prepared(paper: Paper, stand: Stand) -> Stand:
    """The release, with replacements from the paper's folder for the data that it lacks."""
    if not paper.prepare:
        return stand
    module, _, name = paper.prepare.partition(":")
    folder = PAPERS.targets[paper.name].partition(":")[0]
    result: Stand = getattr(import_module(f"{folder}.{module}"), name)(stand)
    return result


def simulated(models: pa.Table) -> bool:
    """Whether any model is simulated that is not there to be, as pseudo-specialists are."""
    return any(row["simulated"] and row["kind"] == "real" for row in models.to_pylist())


def alike(stand: Stand, name: str, sizes: Mapping[str, int], release: str) -> Stand:
    """The release with its differences from the paper's data: its name, simulated models, sizes."""
    if release != stand.release:
        learnt = stand.context.release
        by = f" by routers of {learnt}" if learnt != stand.release else ""
        return replace(stand, unlike=f"computed on {stand.release}{by} instead of {name}")
    if simulated(stand.tables["models"]):
        return replace(stand, unlike=f"models of {stand.release} are simulated")
    counts = stand.counts() if sizes else {}
    for size, printed in sizes.items():
        if counts.get(("in all", size)) != printed:
            has = counts.get(("in all", size))
            said = "unknown" if has is None else f"{has:,.0f}"
            return replace(
                stand, unlike=f"the paper's {name} has {printed:,} {size}, this one {said}"
            )
    return stand


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
        verdict: `equal`, `differs` or `not comparable`.
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
        releases: Benchmark → the release used for it.
        asked: Name of a recipe → the counts it asks for; None where there is no such recipe.
        on_progress: Told how many studies are done, of how many, and which one is begun.
        done: (study, benchmark) → what it came to.
    """

    paper: Paper
    releases: Mapping[str, Stand]
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
        stand = self.releases.get(benchmark)
        if stand is None:
            get = self.paper.benchmarks[benchmark].get
            return Computed(study, "", reason=f"{benchmark} is not here: {get}")
        # The same release may be used for several benchmarks.
        for (other, there), known in self.done.items():
            if other == name and same_release(self.releases.get(there), stand):
                return known
        context = stand.context
        if missing := lacking(study, context):
            need, then = missing[0]
            lacks = f"{stand.release} lacks {need}: {then}"
            return Computed(study, stand.release, reason=lacks)
        self.on_progress(self.made, self.wanted, f"{name} on {stand.release}")
        try:
            read, only = context_for(study, context)
            return Computed(
                study,
                stand.release,
                study.cells(read),
                study.curves(read) if study.curves else None,
                unlike=f"on {only}" if only else "",
                notes=[item for item in (leaks(study, context),) if item],
            )
        except BadInput as error:
            return Computed(study, stand.release, reason=f"{stand.release}: {error.args[0]}")
        finally:
            self.made += 1

    @cached_property
    def wanted(self) -> int:
        """How many studies there are to compute, each once for a release."""
        results: set[tuple[str, int]] = set()
        for name, item in self.paper.items.items():
            for benchmark in self.paper.benchmarks_of(name) if item.study else ():
                stand = self.releases.get(benchmark)
                if stand and not lacking(STUDIES.get(item.study), stand.context):
                    results.add((item.study, self._first(stand)))
        return len(results)

    def _first(self, stand: Stand) -> int:
        """Place of the first entry that is the same release."""
        return next(k for k, item in enumerate(self.releases.values()) if same_release(item, stand))

    def counts(self, benchmark: str) -> tuple[str, Counts]:
        """(of what, counts) of the benchmark's release, or as its recipe asks for them."""
        stand = self.releases.get(benchmark)
        if stand is not None and not stand.unlike:
            return stand.release, stand.counts()
        name = self.paper.benchmarks[benchmark].release
        asked = self.asked(name)
        return ("", {}) if asked is None else (f"recipe {name}", asked)

    def _study_cell(
        self, printed: PrintedCell, row: str, computed: Computed, stand: Stand | None
    ) -> tuple[StudyCell | None, str]:
        """The cell of the study; for a replacement also which data replace which."""
        cells = {(cell.row, cell.column): cell for cell in computed.cells}
        own = cells.get((row, printed.study_column))
        instead = self.paper.benchmarks[printed.on].instead
        if own is not None or stand is None or not stand.unlike or not instead:
            return own, ""
        used: dict[str, str] = {}

        def other(word: re.Match[str]) -> str:
            used[word[0]] = instead[word[0]]
            return instead[word[0]]

        words = re.compile(rf"\b({'|'.join(map(re.escape, instead))})\b")
        place = (words.sub(other, row), words.sub(other, printed.study_column))
        taken = ", ".join(f"{new} in the place of {old}" for old, new in used.items())
        return cells.get(place), f", {taken}" if taken else ""

    def _absent(self, printed: PrintedCell, row: str, computed: Computed) -> str:
        """What a release lacks whose study has no such cell."""
        lacks = self.paper.without.get(row.partition(":")[0])
        if any(cell.row == row for cell in computed.cells):
            return f"{computed.release} has nothing for the column {printed.study_column!r}"
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

    def cell(self, cell: PrintedCell) -> ReproducedCell:
        item = self.paper.items[cell.item]
        if item.counts:
            on, result = self.counts(cell.on)
            value = result.get((cell.study_row, cell.study_column))
            ours = None if value is None else StudyCell(cell.row, cell.column, value, "count")
            gone = "" if ours else f"{cell.on} is not here: {self.paper.benchmarks[cell.on].get}"
            return self._reproduced(cell, ours, on, gone, own=True)
        if not item.study:
            return self._reproduced(cell, None, "", item.lacks, own=False)
        computed = self.study(item.study, cell.on)
        row = computed.release if cell.study_row == "{release}" else cell.study_row
        stand = self.releases.get(cell.on)
        ours, taken = self._study_cell(cell, row, computed, stand)
        reason = computed.reason
        if not reason and ours is None:
            reason = self._absent(cell, row, computed)
        elif not reason and ours is not None and ours.value is None:
            reason = f"{computed.release}: {ours.note or 'not measured'}"
        elif not reason and stand is not None:
            reason = ", ".join(filter(None, (stand.unlike, computed.unlike))) + taken
        return self._reproduced(
            cell, ours, computed.release, reason,
            own=stand is not None and not stand.unlike and not computed.unlike,
        )  # fmt: skip

    def _reproduced(
        self, cell: PrintedCell, ours: StudyCell | None, on: str, reason: str, *, own: bool
    ) -> ReproducedCell:
        known = ours is not None and ours.value is not None
        result = verdict(cell.printed, ours, own)
        if result == "differs":
            reason = self.paper.items[cell.item].remark or "not explained"
        return ReproducedCell(
            cell.item, self.paper.items[cell.item].where, cell.row, cell.column, cell.unit,
            cell.printed.text, cell.printed.value,
            ours.value if ours else None, ours.low if ours else None, ours.high if ours else None,
            on if known else "", result, reason,
        )  # fmt: skip

    def derived(self, printed: PrintedCell, row: Sequence[ReproducedCell]) -> ReproducedCell:
        """The mean over the other columns of a row; of the same verdict where one is missing."""
        known = [cell.value for cell in row if cell.value is not None]
        lacks = [cell for cell in row if cell.verdict == "not comparable"]
        ours = None
        if known and len(known) == len(row):
            ours = StudyCell(printed.row, printed.column, float(np.mean(known)))
        on = ", ".join(dict.fromkeys(cell.on for cell in row if cell.on))
        reason = ""
        if lacks:
            without = next((cell.column for cell in row if cell.value is None), None)
            reason = f"a mean over columns, of which {without} is missing"
            reason = lacks[0].reason if without is None else reason
        return self._reproduced(printed, ours, on, reason, own=not lacks)

    def item(self, name: str) -> tuple[list[ReproducedCell], ReproducedItem]:
        item = self.paper.items[name]
        cells: list[ReproducedCell] = []
        for entry in self.paper.cells(name):
            if entry.derived:
                row = [cell for cell in cells if cell.row == entry.row]
                cells.append(self.derived(entry, row))
            else:
                cells.append(self.cell(entry))
        made, missing = {}, {}
        for benchmark in self.paper.benchmarks_of(name):
            if item.counts:
                on, result = self.counts(benchmark)
                reason = "" if result else f"not here: {self.paper.benchmarks[benchmark].get}"
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
    releases: Mapping[str, Stand],
    *,
    asked: Callable[[str], Counts | None] = lambda name: None,
    on_progress: Callable[[int, int, str], None] = lambda done, wanted, said: None,
) -> Reproduction:
    """Every printed value of a paper beside what its study gives on the benchmark's release.

    Args:
        releases: Benchmark → the release used for it; what is not there is missing.
        asked: Name of a recipe → the counts it asks for; None where there is no such recipe.
        on_progress: Told how many studies are done, of how many, and which one is begun.
    """
    run = Studies(paper, releases, asked, on_progress)
    cells, items = [], []
    for name, item in paper.items.items():
        if not item.drawing:
            own, result = run.item(name)
            cells += own
            items.append(result)
    on_progress(run.wanted, run.wanted, "")
    return Reproduction(paper, cells, items, run.done)


# How many of a paper's values are printed, computed, equal, different, not to be had, and why.

VERDICTS: Sequence[Verdict] = ("equal", "differs", "not comparable")
#: Headings of the counts, in order.
COUNTS = ("printed", "computed", *VERDICTS)


def tally(result: Reproduction) -> list[dict[str, Any]]:
    """Each table and figure, then `in all`: item, title, the counts, and the reasons.

    `differs because` and `not because` are lists of `reason`, `cells`, most cells first.
    `computed` counts every value, also on other data than the paper's, whose cell stays
    `not comparable`. A figure prints no values; `drawn` says whether it was computed.
    """

    def row(name: str, title: str, drawn: bool, cells: Sequence[ReproducedCell]) -> dict[str, Any]:
        return {
            "item": name, "title": title, "drawn": drawn, **_counts(cells),
            "differs because": _reasons(cells, "differs"),
            "not because": _reasons(cells, "not comparable"),
        }  # fmt: skip

    cells = result.cells
    rows = [
        row(item.item, item.title, bool(item.made), [c for c in cells if c.item == item.item])
        for item in result.items
    ]
    drawn = any(item["drawn"] for item in rows)
    return [*rows, row("in all", result.paper.title, drawn, cells)]


def _counts(cells: Sequence[ReproducedCell]) -> dict[str, int]:
    """How many cells are printed, computed, and of each verdict: `COUNTS`."""
    verdicts = Counter(cell.verdict for cell in cells)
    counts = (len(cells), sum(cell.value is not None for cell in cells))
    return dict(zip(COUNTS, (*counts, *(verdicts[item] for item in VERDICTS)), strict=True))


def _reasons(cells: Iterable[ReproducedCell], wanted: Verdict) -> list[dict[str, Any]]:
    counts = Counter(cell.reason for cell in cells if cell.verdict == wanted)
    return [{"reason": reason, "cells": n} for reason, n in counts.most_common()]


# The releases of a reproduction as studies read them: one context for each, embedded once.


def _embedded(tables: Tables, cache: Path, *, wanted: bool) -> Tables:
    """The tables with the papers' embeddings, where they are wanted and none are there."""
    own = ENCODER if wanted and "embeddings" not in tables else None
    return with_embeddings(tables, None, False, cache, own)


def stands_of(
    paper: Paper, releases: Mapping[str, Path], also: Sequence[Path], cache: Path, resamples: int
) -> dict[str, Stand]:
    """Benchmark → the release used for it, with what its paper puts in where it lacks it.

    Args:
        releases: Benchmark → folder of its release.
        also: Tables beside the releases.
        cache: Where embeddings and predictions are kept.
    """
    embed = {releases[name] for name in releases if paper.benchmarks[name].embed}
    # In the order of the paper: the last bits of vectors depend on what was embedded before.
    places = dict.fromkeys(releases.values())
    learnt = {releases.get(paper.benchmarks[n].trained_on or "", p) for n, p in releases.items()}
    whole = {spot: read_with(spot, also) for spot in places}
    tables = {}
    for spot, own in whole.items():
        part = own if spot in learnt else tested_part(own)
        tables[spot] = _embedded(part, cache, wanted=spot in embed)
    contexts: dict[tuple[Path, Path | None], Stand] = {}
    result = {}
    for name, spot in releases.items():
        benchmark = paper.benchmarks[name]
        source = releases.get(benchmark.trained_on or "")
        key = (spot, source if source != spot else None)
        if key not in contexts:
            first, tested = spot, {}
            if key[1] is not None:
                first, tested = key[1], {named(spot)[0]: tables[spot]}
            context = context_of(
                first, tables[first], tested=tested, resamples=resamples, pair=benchmark.pair,
                kept=partial(store_in, cache),
            )  # fmt: skip
            context.routers = paper.study_routers
            if context.pair is not None and set(context.pair) - set(context.core.model_ids):
                context.pair = pair_in_place(context.core, context.default_scheme())
                line("pair", f"{' and '.join(context.pair)} on {context.release}")
            if context.pair is not None and simulated(context.tables["models"]):
                # A program plays both: which of them is the better one is its throw.
                context.pair = by_accuracy(context.core, context.default_scheme(), context.pair)
            contexts[key] = Stand(context, whole=whole[spot] if tested else None)
        stand = alike(contexts[key], name, benchmark.size, benchmark.release)
        if paper.prepare and stand.unlike:
            line("prepare", f"{name}: what {stand.release} lacks")
        result[name] = prepared(paper, stand)
    return result


def pair_in_place(core: Core, scheme: str) -> tuple[str, str]:
    """(small, large) of a pool that lacks the paper's: of more than two models the one of median
    accuracy on train and the most accurate."""
    if (pair := default_pair(core)) is not None:
        return pair
    means = single_means(core.labels[core.rows(scheme, "train")])
    real = [k for k, name in enumerate(core.model_ids) if core.kinds.get(name, "real") == "real"]
    order = sorted(real, key=lambda k: -np.inf if np.isnan(means[k]) else means[k])
    return core.model_ids[order[(len(order) - 1) // 2]], core.model_ids[order[-1]]


def by_accuracy(core: Core, scheme: str, pair: tuple[str, str]) -> tuple[str, str]:
    """Two models, the more accurate one on train last."""
    means = single_means(core.labels[core.rows(scheme, "train")])
    item, other = (float(means[core.place(name)]) for name in pair)
    return pair if item <= other else (pair[1], pair[0])


def tested_part(tables: Tables) -> Tables:
    """The tables of a release that is only tested on: its other questions are never read."""
    splits, queries = tables["splits"], tables["queries"]
    wanted = pc.equal(splits.column("scheme"), default_scheme(core_of(tables), None))
    test = splits.filter(pc.and_(wanted, pc.equal(splits.column("split"), "test")))
    asked = pc.is_in(queries.column("query_id"), value_set=test.column("query_id").combine_chunks())
    return tables.also("queries", queries.filter(asked))


# `zoo tune` in small for a paper's tables of trained encoders, where no release is named.

#: The encoder that is trained, and with fewer of its layers as the smaller one.
TUNING_ENCODER = "minilm"


def with_tuned(
    paper: Paper, small: SmallTuning, releases: Mapping[str, Stand], folder: Path, cache: Path
) -> None:
    """Put choices of routers with frozen and trained encoders beside the releases that need them.

    Args:
        folder: Where cells are kept; those that are there are not trained again.
        cache: Where the encoder with fewer layers is kept.
    """
    if find_spec("accelerate") is None:
        line("left out", "trained encoders: pip install -c constraints.txt '.[tune]'")
        return
    made: dict[str, pa.Table] = {}
    for item, entry in paper.items.items():
        if not entry.study or "tuned" not in STUDIES.get(entry.study).needs:
            continue
        for name in paper.benchmarks_of(item):
            context = releases[name].context if name in releases else None
            if context is None or "tuned" in context.tables:
                continue
            if context.release not in made:
                made[context.release] = _tuned(small, context, folder / context.release, cache)
            context.tables = with_beside(context.tables, ()).also("tuned", made[context.release])


def _tuned(small: SmallTuning, context: StudyContext, folder: Path, cache: Path) -> pa.Table:
    core, scheme = read(context.tables, context.default_scheme())
    grid = Grid(
        small.routers, (str(fewer_layers(small.layers, cache)), TUNING_ENCODER), small.rows,
        ("frozen", "tuned"), (FIRST_SEED,),
    )  # fmt: skip
    settings = TuningSettings(epochs=small.epochs, tokens=small.tokens, head_first=True)
    line("tune", f"{context.release}, {' and '.join(map(str, small.rows))} train questions")
    tune(core, scheme, grid, settings, folder)
    return pq.read_table(folder / "tuned.parquet")


def fewer_layers(layers: int, cache: Path) -> Path:
    """Folder of the encoder's first layers, made where it is not there."""
    folder = cache / "encoders" / f"{Path(TUNING_ENCODER).name}-{layers}-layers"
    if not (folder / "modules.json").is_file():
        model = encoders.loaded(encoders.ALIASES.get(TUNING_ENCODER, TUNING_ENCODER))
        inside = model[0].auto_model
        inside.encoder.layer = inside.encoder.layer[:layers]
        inside.config.num_hidden_layers = layers
        with staging(folder) as unfinished:
            model.save(str(unfinished))
            place(unfinished, folder)
    return folder


# The zoo behind a paper's tables: its routers and encoders, with or without the whole search.


def zoo_figures(
    paper: Paper,
    context: StudyContext,
    folder: Path,
    *,
    encoders: Sequence[str],
    search: bool,
    cache: Path,
    extra_encoders: Sequence[str] = (),
) -> ZooFigures:
    """Figures of the paper's routers on a release; cells that are there are not fitted again.

    Args:
        encoders: As `routeyard zoo run` takes them; empty for those of the paper's that are here.
        search: All settings and seeds of the protocol; else each router's first setting once.
        extra_encoders: Encoders that are taken beside the paper's where none are named.
    """

    def ran() -> tuple[zoo.Zoo, CellInputs]:
        entrants = registered(list(paper.routers))
        result = run(
            # Without embeddings: each cell reads its encoder's.
            replace(context.core, embeddings=None), context.default_scheme(), here(), entrants,
            folder,
            title=f"Routers of {paper.name} on {context.release}", search=search, cache=cache,
        )  # fmt: skip
        for (router, encoder), why in result[0].refused.items():
            line("left out", f"{router} with {encoder}: {why}")
        return result

    def here() -> dict[str, Vectors]:
        wanted = encoders or (*paper.encoders.values(), *extra_encoders)
        return context.once(
            "vectors", lambda: _vectors(context, wanted, cache, needed=bool(encoders))
        )

    def by_encoder() -> Mapping[str, Evaluation]:
        done, bench = context.once("zoo run", ran)
        how = EvaluationSettings(resamples=context.resamples)
        return {name: measured(bench, done, name, how) for name in here()}

    def on_train() -> Mapping[str, Mapping[str, float]]:
        done, _ = context.once("zoo run", ran)
        return {name: zoo.train_bce(done, name) for name in here()}

    def cells() -> object:
        return cells_table(context.once("zoo run", ran)[0].results)

    return ZooFigures(by_encoder, on_train, cells)


def _vectors(
    context: StudyContext, encoders: Sequence[str], cache: Path, *, needed: bool
) -> dict[str, Vectors]:
    """Encoder → vectors; of those that are not needed the ones whose weights are here.

    Raises:
        BadInput: no encoder can be had.
    """
    result: dict[str, Vectors] = {}
    for name in encoders:
        try:
            result |= vectors(
                context.tables, context.core, [name], scheme=context.default_scheme(), cache=cache
            )
        except (RouteyardError, OSError) as error:
            if needed:
                raise
            line("left out", f"encoder {name}: {str(error.args[0]).splitlines()[0]}")
    if not result:
        raise BadInput("no encoder of the paper is here", next_step="--encoders tfidf")
    return result


# A paper reproduced: releases, recorded matrices or a rehearsal in, a page and a JSON out.

#: Where `--data` reads recorded matrices.
DATA = "ROUTEYARD_DATA"
#: Curation rules that leave every question and model in its place.
KEEPING = ("preference", "upstream_split", "unseen_models", "dense_sparse")


def listed() -> list[dict[str, Any]]:
    """Every paper: name, title, reference, benchmarks, printed cells, tables and figures."""
    papers: list[Paper] = [PAPERS.get(name) for name in PAPERS.names()]
    return [
        {
            "name": paper.name,
            "title": paper.title,
            "reference": paper.reference,
            "benchmarks": {k: entry.release or None for k, entry in paper.benchmarks.items()},
            "tables_and_figures": sum(not item.drawing for item in paper.items.values()),
            "printed": sum(1 for item in paper.items for _ in paper.cells(item)),
        }
        for paper in papers
    ]


def reproduce(
    paper: str,
    on: Sequence[str | Path] = (),
    *,
    data: bool = False,
    out: str | Path = "reproduced",
    workspace: str | Path = "yard",
    also: Sequence[str | Path] = (),
    routers: Sequence[str] = (),
    encoders: Sequence[str] = (),
    search: bool | None = None,
    resamples: int = 2_000,
    cache: Path = CACHE,
) -> Reproduction:
    """Compute every table and figure of a paper, each value beside the one it prints.

    Args:
        paper: Name of a paper; `routeyard reproduce list` has them.
        on: Release folders, or `BENCHMARK=FOLDER`. A release of the recipe of one of the
            paper's benchmarks is used for that one, any other for the next that has none. Where
            routers learn from one benchmark and are tested on others of which none is named,
            they are tested on its own test questions.
        data: Build and use the shipped recipes over ROUTEYARD_DATA that replace the paper's.
        out: Folder for the page, the JSON and each study; a zoo that is there goes on.
        workspace: Where releases are built that are needed and not there.
        also: Tables beside the releases: descriptors, hidden states, signals, tuned routers.
        routers: Of the paper's routers only these.
        encoders: As `routeyard zoo run` takes them; by default those of the paper's that are here.
            Only for papers whose routers are the zoo's, like `search`.
        search: Whether the paper's own search of settings and seeds is run, which can take hours.
            By default it is on releases that are named, and elsewhere each router has its first
            setting and one fit.

    Returns:
        Cells with `value`, `low`, `high`, `printed_value`, `verdict` and `reason`; `summary()`.
        Without releases and `data`, the paper's recipes are rehearsed: no value is the paper's.

    Raises:
        UnknownName: there is no such paper.
        BadInput: a release is given for a benchmark that the paper does not have, there is
            neither a release nor anything to rehearse, or an argument is given that nothing of
            this paper reads.
    """
    known: Paper = PAPERS.get(paper)
    options = {"routers": routers, "encoders": encoders, "search": search is not None}
    for name in [n for n, there in options.items() if there and n not in known.reads]:
        raise BadInput(
            f"nothing of {paper} reads {name!r}", where=f"--{name}", next_step="leave it out"
        )
    known = replace(known, routers=tuple(routers) or known.routers)
    folder = Path(out)
    releases = _releases(known, on, data, Path(workspace))
    for release in releases.values():
        out_folder(release, folder)
    folder.mkdir(parents=True, exist_ok=True)
    result = stands_of(known, releases, [Path(place) for place in also], cache, resamples)
    if known.zoo:
        for stand in {id(item): item for item in result.values()}.values():
            stand.context.zoo = zoo_figures(
                known, stand.context, folder / "zoo" / stand.context.release,
                encoders=encoders, cache=cache,
                search=bool(on) if search is None else search,
                # What is spread over encoders is rehearsed with two of them.
                extra_encoders=() if on or data else [TFIDF],
            )  # fmt: skip
    if known.tuning is not None and not on:
        with_tuned(known, known.tuning, result, folder / "tuned", cache)
    with counter("studies", "studies") as count:

        def show_progress(done: int, wanted: int, said: str) -> None:
            count(done, wanted)
            if said:
                line("reproduce", f"{done + 1}/{wanted}: {said}")

        value = reproduction(known, result, asked=asked_counts, on_progress=show_progress)
    how = " ".join(f"--on {item}" for item in map(str, on)) or ("--data" if data else "")
    value = replace(value, how=how)
    write(value, releases, folder)
    return value


def _releases(
    paper: Paper, on: Sequence[str | Path], data: bool, workspace: Path
) -> dict[str, Path]:
    """Benchmark → release used for it."""
    if on and data:
        why = "releases are named, so none is built over recorded data"
        raise BadInput(why, where="--on and --data", next_step="leave one of them out")
    if on:
        return _assigned(paper, on)
    if data:
        if DATA not in os.environ:
            raise BadInput(
                f"{DATA} is not set", next_step=f"export {DATA}=FOLDER of recorded matrices"
            )
        built = {name: item.data for name, item in paper.benchmarks.items() if item.data}
        return {name: _built(recipe, workspace) for name, recipe in built.items()}
    return {
        name: _rehearsed(benchmark.rehearsal, workspace, benchmark.copies)
        for name, benchmark in paper.benchmarks.items()
        if benchmark.rehearsal
    }


def _assigned(paper: Paper, on: Sequence[str | Path]) -> dict[str, Path]:
    result: dict[str, Path] = {}
    rest = []
    for item in map(str, on):
        name, equals, place = item.partition("=")
        if not equals:
            release = Path(item)
            own = [k for k, b in paper.benchmarks.items() if b.release == named(release)[0]]
            if own:
                result[own[0]] = release
            else:
                rest.append(release)
        elif name in paper.benchmarks:
            result[name] = Path(place)
        else:
            raise BadInput(
                f"{paper.name} has no benchmark {name!r}",
                next_step=f"name one of {', '.join(paper.benchmarks)}",
            )
    free = [name for name in paper.benchmarks if name not in result]
    if len(rest) > len(free):
        raise BadInput(
            f"{paper.name} measures on {len(paper.benchmarks)} benchmarks, and more were named",
            where=str(rest[len(free)]),
            next_step="leave some out",
        )
    result |= dict(zip(free, rest, strict=False))
    tested = [name for name in paper.benchmarks if paper.benchmarks[name].trained_on]
    if not set(tested) & set(result):
        # Routers are tested on test questions of the release that they learn from.
        learnt = {name: paper.benchmarks[name].trained_on or "" for name in tested}
        result |= {name: result[source] for name, source in learnt.items() if source in result}
    return result


def _built(recipe: str, workspace: Path) -> Path:
    """The release of a shipped recipe, built where it is not there."""
    from routeyard.flows.build import run_build

    checked, _ = load(recipe)
    place = workspace / "releases" / checked.name / checked.version
    if not place.is_dir():
        run_build(recipe, str(workspace), until="release")
    return place


def _rehearsed(recipe: str, workspace: Path, copies: int) -> Path:
    """The release of a rehearsal, made where it is not there."""
    from routeyard.flows.rehearse import rehearse

    place = workspace / "releases" / f"{recipe}-rehearsal" / version_of(recipe)
    if not place.is_dir():
        rehearse(recipe, str(workspace), copies=copies)
    return place


def version_of(recipe: str) -> str:
    """Version of a shipped recipe, whatever its environment lacks."""
    return str(read_yaml(find(recipe))["version"])


def asked_counts(name: str) -> Counts | None:
    """Questions per source, parts of the split and models that a shipped recipe asks for."""
    if name not in shipped():
        return None
    try:
        recipe, _ = load(name)
    except BadInput:
        return None
    result: dict[tuple[str, str], float] = {
        (source.name, "questions"): float(source.limit) for source in recipe.sources if source.limit
    }
    # What a rule takes out or puts in is known once the release is built.
    if all(rule.rule in KEEPING for rule in recipe.curate):
        result["in all", "questions"] = sum(result.values())
        if recipe.pool.models:
            result["in all", "models"] = float(len(recipe.pool.models))
    split = recipe.split
    for part in ("train", "validation", "test") if split is not None else ():
        wanted = getattr(split, part)
        if wanted is not None and wanted > 1:
            result["in all", part] = float(wanted)
    for source, parts in (getattr(split, "sources", None) or {}).items():
        for part in ("train", "validation", "test"):
            result[source, part] = float(getattr(parts, part) or 0)
    return result


def write(result: Reproduction, releases: Mapping[str, Path], out: Path) -> Path:
    """`<paper>.json`, `.md` and `.html`, and each study in a folder of its release."""
    import json

    from routeyard.datacards.reports.study import reproduction_markdown as markdown
    from routeyard.datacards.reports.study import reproduction_page as page

    drawn: dict[tuple[str, str], str | None] = {}
    for (name, benchmark), study in result.studies.items():
        if study.cells and (name, study.release) not in drawn and benchmark in releases:
            drawn[name, study.release] = write_study(
                study.study, study.cells, study.curves, study.release, releases[benchmark],
                out / study.release, study.notes,
            )  # fmt: skip
    links: dict[str, list[tuple[str, str]]] = {}
    figures: dict[str, list[tuple[str, str]]] = {}
    for item in result.items:
        if not item.item.startswith("Figure"):
            continue
        for release in dict.fromkeys(item.made.values()):
            if svg := drawn.get((item.study, release)):
                figures.setdefault(item.item, []).append((release, svg))
                links.setdefault(item.item, []).append((release, f"{release}/{item.study}.svg"))
    content = as_json(result)
    path = out / f"{result.paper.name}.json"
    write_text(path, json.dumps(plain(content), ensure_ascii=False, indent=1) + "\n")
    write_text(out / f"{result.paper.name}.md", markdown(content, links))
    write_text(out / f"{result.paper.name}.html", page(content, figures))
    return path


def as_json(result: Reproduction) -> dict[str, Any]:
    """The reproduction as plain values: paper, command, summary, table, items, cells."""
    from dataclasses import asdict

    return {
        "paper": result.paper.name,
        "title": result.paper.title,
        "reference": result.paper.reference,
        "command": f"routeyard reproduce {result.paper.name} {result.how}".rstrip(),
        "summary": result.summary(),
        "table": tally(result),
        "items": [asdict(item) for item in result.items],
        "cells": [asdict(cell) for cell in result.cells],
    }


def said(result: Reproduction, out: Path) -> Iterator[str]:
    """Lines of the summary: the counts, then each reason for a missing value once."""
    for name, count in result.summary().items():
        yield f"{name:<20} {count}"
    missing: dict[str, int] = {}
    for cell in result.cells:
        if cell.verdict == "not comparable":
            missing[cell.reason] = missing.get(cell.reason, 0) + 1
    for reason, count in sorted(missing.items(), key=lambda item: -item[1])[:20]:
        yield f"  {count} cells: {reason}"
    yield f"page                 {out / result.paper.name}.html"
