"""The releases used for a paper's benchmarks, and whether they are the paper's own data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np
import pyarrow as pa

from routeyard.papers import PAPERS
from routeyard.papers.paper import Paper
from routeyard.pipelines.experiment.splits import default_scheme
from routeyard.pipelines.matrix.reading import core_of
from routeyard.pipelines.studies.context import StudyContext

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
