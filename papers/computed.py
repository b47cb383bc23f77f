"""A paper's studies on the releases used for its benchmarks, each computed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from routeyard.papers.paper import Paper
from routeyard.papers.stands import Counts, Stand, same_release
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.studies import STUDIES
from routeyard.pipelines.studies.fed import fed, leaks
from routeyard.pipelines.studies.needs import lacking
from routeyard.pipelines.studies.study import Study, StudyCell


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
