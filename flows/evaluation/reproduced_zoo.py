"""The zoo behind a paper's tables: its routers and encoders, with or without the whole search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from routeyard.flows.console import line
from routeyard.flows.evaluation.vectors import vectors
from routeyard.flows.evaluation.zoo import measured, run
from routeyard.papers.paper import Paper
from routeyard.pipelines.arrays import Vectors
from routeyard.pipelines.errors import BadInput, RouteyardError
from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.experiment.entrants import registered
from routeyard.pipelines.experiment.settings import EvaluationSettings
from routeyard.pipelines.experiment.splits import with_validation
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.studies.context import StudyContext, ZooFigures
from routeyard.pipelines.zoo.report import cells_table


def zoo_figures(
    paper: Paper,
    context: StudyContext,
    folder: Path,
    *,
    routers: Sequence[str],
    encoders: Sequence[str],
    search: bool,
    cache: Path,
) -> ZooFigures:
    """Figures of the paper's routers on a release; cells that lie there are not fitted again.

    Args:
        routers: Of the paper's routers only these; empty for all.
        encoders: As `routeyard zoo run` takes them; empty for those of the paper's that are here.
        search: All settings and seeds of the protocol; else each router's first setting once.
    """

    def ran(core: Core, matrices: dict[str, Vectors], place: Path) -> Mapping[str, Evaluation]:
        entrants = registered(list(routers or paper.routers))
        done, bench = run(
            core, context.default_scheme(), matrices, entrants, place,
            title=f"Routers of {paper.name} on {context.release}", search=search, cache=cache,
        )  # fmt: skip
        for (router, encoder), why in done.refused.items():
            line("left out", f"{router} with {encoder}: {why}")
        context.once(("results", place), lambda: done.results)
        how = EvaluationSettings(resamples=context.resamples)
        return {name: measured(bench, done, name, how) for name in matrices}

    def here() -> dict[str, Vectors]:
        return context.once("vectors", partial(_vectors, paper, context, encoders, cache))

    def by_encoder() -> Mapping[str, Evaluation]:
        return ran(_bare(context.core), here(), folder)

    def on_train() -> Mapping[str, Evaluation]:
        core, rows = _train_as_test(_bare(context.core), context.default_scheme())
        return ran(core, {name: one[rows] for name, one in here().items()}, folder / "train")

    def cells() -> object:
        context.once("zoo", by_encoder)
        return cells_table(context.once(("results", folder), list))

    return ZooFigures(by_encoder, on_train, cells)


def _bare(core: Core) -> Core:
    """The core without embeddings: each cell reads its encoder's."""
    return replace(core, embeddings=None)


def _vectors(
    paper: Paper, context: StudyContext, encoders: Sequence[str], cache: Path
) -> dict[str, Vectors]:
    """Encoder → vectors; of the paper's encoders those whose weights are here.

    Raises:
        BadInput: no encoder can be had.
    """
    found: dict[str, Vectors] = {}
    for name in encoders or paper.encoders.values():
        try:
            found |= vectors(
                context.tables, context.core, [name], scheme=context.default_scheme(), cache=cache
            )
        except (RouteyardError, OSError) as error:
            if encoders:
                raise
            line("left out", f"encoder {name}: {str(error.args[0]).splitlines()[0]}")
    if not found:
        raise BadInput("no encoder of the paper is here", next_step="--encoders tfidf")
    return found


def _train_as_test(core: Core, scheme: str) -> tuple[Core, np.ndarray]:
    """The core with its train questions once more, as test questions; the rows all are from."""
    core, _ = with_validation(core, scheme)
    train, validation = core.rows(scheme, "train"), core.rows(scheme, "validation")
    rows = np.concatenate([train, validation, train])
    taken = core.take(rows)
    split = np.repeat(["train", "validation", "test"], [len(train), len(validation), len(train)])
    ids = [*taken.query_ids[: len(train) + len(validation)]]
    ids += [f"{query}, as test" for query in taken.query_ids[: len(train)]]
    return replace(taken, query_ids=tuple(ids), splits={scheme: split}), rows
