"""The zoo behind a paper's tables: its routers and encoders, with or without the whole search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from routeyard.flows.console import line
from routeyard.flows.evaluation.vectors import vectors
from routeyard.flows.evaluation.zoo import measured, run
from routeyard.papers.paper import Paper
from routeyard.pipelines.arrays import Vectors
from routeyard.pipelines.errors import BadInput, RouteyardError
from routeyard.pipelines.evaluate.run import Evaluation
from routeyard.pipelines.experiment.entrants import registered
from routeyard.pipelines.experiment.inputs import CellInputs
from routeyard.pipelines.experiment.settings import EvaluationSettings
from routeyard.pipelines.matrix.core import Core
from routeyard.pipelines.studies.context import StudyContext, ZooFigures
from routeyard.pipelines.zoo import run as zoo
from routeyard.pipelines.zoo.report import cells_table


def zoo_figures(
    paper: Paper,
    context: StudyContext,
    folder: Path,
    *,
    encoders: Sequence[str],
    search: bool,
    cache: Path,
    beside: Sequence[str] = (),
) -> ZooFigures:
    """Figures of the paper's routers on a release; cells that are there are not fitted again.

    Args:
        encoders: As `routeyard zoo run` takes them; empty for those of the paper's that are here.
        search: All settings and seeds of the protocol; else each router's first setting once.
        beside: Encoders that are taken beside the paper's where none are named.
    """

    def ran() -> tuple[zoo.Zoo, CellInputs]:
        entrants = registered(list(paper.routers))
        found = run(
            _bare(context.core), context.default_scheme(), here(), entrants, folder,
            title=f"Routers of {paper.name} on {context.release}", search=search, cache=cache,
        )  # fmt: skip
        for (router, encoder), why in found[0].refused.items():
            line("left out", f"{router} with {encoder}: {why}")
        return found

    def here() -> dict[str, Vectors]:
        wanted = encoders or (*paper.encoders.values(), *beside)
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


def _bare(core: Core) -> Core:
    """The core without embeddings: each cell reads its encoder's."""
    return replace(core, embeddings=None)


def _vectors(
    context: StudyContext, encoders: Sequence[str], cache: Path, *, needed: bool
) -> dict[str, Vectors]:
    """Encoder → vectors; of those that are not needed the ones whose weights are here.

    Raises:
        BadInput: no encoder can be had.
    """
    found: dict[str, Vectors] = {}
    for name in encoders:
        try:
            found |= vectors(
                context.tables, context.core, [name], scheme=context.default_scheme(), cache=cache
            )
        except (RouteyardError, OSError) as error:
            if needed:
                raise
            line("left out", f"encoder {name}: {str(error.args[0]).splitlines()[0]}")
    if not found:
        raise BadInput("no encoder of the paper is here", next_step="--encoders tfidf")
    return found
