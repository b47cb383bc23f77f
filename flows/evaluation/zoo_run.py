"""The zoo run on a release folder: routers, encoders and rules by name, results in a folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from routeyard.flows.console import line
from routeyard.flows.evaluation.released import out_folder, read_release, with_beside
from routeyard.flows.evaluation.vectors import vectors
from routeyard.flows.evaluation.zoo import run, write_report
from routeyard.flows.tracking.runners import Runner
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.experiment.entrants import own as theirs
from routeyard.pipelines.experiment.entrants import registered
from routeyard.pipelines.experiment.settings import PROTOCOL_SEEDS, EvaluationSettings
from routeyard.pipelines.experiment.splits import default_scheme
from routeyard.pipelines.matrix.reading import core_of
from routeyard.pipelines.zoo.choose import asked

#: The plateau study's protocol, measured with fewer resamples than `evaluate` takes.
SETTINGS = EvaluationSettings(seeds=PROTOCOL_SEEDS, resamples=2_000, splits=5)


def run_zoo(
    release: Path,
    out: Path,
    *,
    encoders: Sequence[str],
    routers: Sequence[str] | None = None,
    own: Sequence[str] = (),
    rules: Sequence[str] = (),
    also: Sequence[Path] = (),
    settings: EvaluationSettings = SETTINGS,
    cache: Path = Path("yard/cache/embeddings"),
    report: bool = True,
    runner: Runner = "threads",
    workers: int = 2,
    dask_address: str | None = None,
) -> dict[str, Any]:
    """Train and compare routers on a release; the standings, and the folder they are in.

    Args:
        encoders: tfidf, minilm, names of packaged weights, folders or hub ids.
        routers: Names of registered routers; None for all.
        own: `module:Class` or `file.py:Class` of other routers (this runs that code), or
            tables of predictions.
        rules: Selection rules with their value, such as `utility:0.3`.
        also: Files or folders of tables beside the release.
        settings: `seeds` of the fits, `scheme`, and how the winners are measured.
        cache: Folder of what commands share: embeddings and predictions.
        report: Also evaluate the winners, with a page for each encoder.

    Raises:
        BadInput: no encoder is named, two routers have one name, or something named is missing.
    """
    entrants = [*registered(None if routers is None else list(routers)), *map(theirs, own)]
    names = [one.name for one in entrants]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadInput(f"two routers are called {twice[0]!r}", next_step="rename one of them")
    wanted = [asked(text) for text in rules]
    tables = with_beside(read_release(release), also)
    folder = out_folder(release, out)
    core = core_of(tables.without("embeddings"))
    chosen = default_scheme(core, settings.scheme)
    if not encoders:
        raise BadInput("no encoder is named", next_step="--encoders tfidf needs no weights")
    matrices = vectors(tables, core, encoders, scheme=chosen, cache=cache)
    title = f"Routers on {release.resolve().parent.name} {release.resolve().name}"
    done, bench = run(
        core, chosen, matrices, entrants, folder, title=title, seeds=settings.seeds, cache=cache,
        runner=runner, workers=workers, dask_address=dask_address, rules=wanted,
        splits=settings.splits,
    )  # fmt: skip
    for (router, encoder), why in sorted(done.refused.items()):
        line("refused", f"{router} with {encoder}: {why}")
    if not done.rankings:
        why = next(iter(done.refused.values()), "no router was named")
        raise BadInput(f"no router could be fitted: {why}", next_step="`routeyard zoo list`")
    for name in encoders if report else ():
        write_report(bench, done, folder, name, release=release, tables=tables, settings=settings)
    standings = json.loads((folder / "standings.json").read_text(encoding="utf-8"))
    told = settings.but(scheme=chosen).to_json()
    return {"path": folder, "standings": standings, "settings": told}
