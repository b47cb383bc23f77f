"""`zoo tune` in small for a paper's tables of trained encoders, where no release is named."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from routeyard.flows.console import line
from routeyard.flows.evaluation.released import Tables
from routeyard.flows.evaluation.tune import read, tune
from routeyard.flows.evaluation.tuning_grid import Grid
from routeyard.papers.paper import Paper, SmallTuning
from routeyard.papers.stands import Stand
from routeyard.pipelines import encoders
from routeyard.pipelines.experiment.settings import FIRST_SEED
from routeyard.pipelines.io.staging import place, staging
from routeyard.pipelines.studies import STUDIES
from routeyard.pipelines.studies.context import StudyContext
from routeyard.pipelines.tuning.settings import TuningSettings

#: The encoder that is trained, and with fewer of its layers as the smaller one.
ENCODER = "minilm"


def with_tuned(
    paper: Paper, small: SmallTuning, stands: Mapping[str, Stand], folder: Path, cache: Path
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
    for item, one in paper.items.items():
        if not one.study or "tuned" not in STUDIES.get(one.study).needs:
            continue
        for name in paper.benchmarks_of(item):
            context = stands[name].context if name in stands else None
            if context is None or "tuned" in context.tables:
                continue
            if context.release not in made:
                made[context.release] = _tuned(small, context, folder / context.release, cache)
            table = made[context.release]
            context.tables = (
                context.tables.also("tuned", table)
                if isinstance(context.tables, Tables)
                else {**context.tables, "tuned": table}
            )


def _tuned(small: SmallTuning, context: StudyContext, folder: Path, cache: Path) -> pa.Table:
    core, scheme = read(context.tables, context.default_scheme())
    grid = Grid(
        small.routers, (str(fewer_layers(small.layers, cache)), ENCODER), small.rows,
        ("frozen", "tuned"), (FIRST_SEED,),
    )  # fmt: skip
    settings = TuningSettings(epochs=small.epochs, tokens=small.tokens, head_first=True)
    line("tune", f"{context.release}, {' and '.join(map(str, small.rows))} train questions")
    tune(core, scheme, grid, settings, folder)
    return pq.read_table(folder / "tuned.parquet")


def fewer_layers(layers: int, cache: Path) -> Path:
    """Folder of the encoder's first layers, made where it is not there."""
    folder = cache / "encoders" / f"{Path(ENCODER).name}-{layers}-layers"
    if not (folder / "modules.json").is_file():
        model = encoders.loaded(encoders.ALIASES.get(ENCODER, ENCODER))
        inside = model[0].auto_model
        inside.encoder.layer = inside.encoder.layer[:layers]
        inside.config.num_hidden_layers = layers
        with staging(folder) as unfinished:
            model.save(str(unfinished))
            place(unfinished, folder)
    return folder
