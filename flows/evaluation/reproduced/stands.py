"""The releases of a reproduction as studies read them: one context for each, embedded once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from routeyard.flows.console import line
from routeyard.flows.evaluation.kept import store_in
from routeyard.flows.evaluation.released import Tables, read_with, with_embeddings
from routeyard.flows.evaluation.study import context_of, named
from routeyard.papers.paper import Paper
from routeyard.papers.stands import Stand, alike, prepared, simulated
from routeyard.pipelines.evaluate.pairs import default_pair
from routeyard.pipelines.experiment.splits import default_scheme
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.matrix.ranking import single_means
from routeyard.pipelines.matrix.reading import core_of
from routeyard.schemas.recipe import ENCODER


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
    places = set(releases.values())
    learnt = {releases.get(paper.benchmarks[n].trained_on or "", p) for n, p in releases.items()}
    whole = {place: read_with(place, also) for place in places}
    tables = {}
    for place, own in whole.items():
        part = own if place in learnt else tested_part(own)
        tables[place] = _embedded(part, cache, wanted=place in embed)
    contexts: dict[tuple[Path, Path | None], Stand] = {}
    found = {}
    for name, place in releases.items():
        benchmark = paper.benchmarks[name]
        source = releases.get(benchmark.trained_on or "")
        key = (place, source if source != place else None)
        if key not in contexts:
            first, tested = place, {}
            if key[1] is not None:
                first, tested = key[1], {named(place)[0]: tables[place]}
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
            contexts[key] = Stand(context, whole=whole[place] if tested else None)
        stand = alike(contexts[key], name, benchmark.size, benchmark.release)
        if paper.prepare and stand.unlike:
            line("prepare", f"{name}: what {stand.release} lacks")
        found[name] = prepared(paper, stand)
    return found


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
    one, other = (float(means[core.place(name)]) for name in pair)
    return pair if one <= other else (pair[1], pair[0])


def tested_part(tables: Tables) -> Tables:
    """The tables of a release that is only tested on: its other questions are never read."""
    splits, queries = tables["splits"], tables["queries"]
    wanted = pc.equal(splits.column("scheme"), default_scheme(core_of(tables), None))
    test = splits.filter(pc.and_(wanted, pc.equal(splits.column("split"), "test")))
    asked = pc.is_in(queries.column("query_id"), value_set=test.column("query_id").combine_chunks())
    return tables.also("queries", queries.filter(asked))
