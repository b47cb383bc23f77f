"""`routeyard zoo run`: every router on a release under one protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from routeyard.flows.cli.options import CACHE, WrittenPath, comma_list
from routeyard.flows.cli.results import Output
from routeyard.flows.cli.settings_options import with_settings
from routeyard.pipelines.experiment.settings import EvaluationSettings


@with_settings(
    only=("scheme", "seeds", "splits", "resamples"), seeds="zoo", resamples=2_000, splits=5
)
def command(
    release: Path,
    out: WrittenPath,
    settings: EvaluationSettings,
    routers: str = "all",
    encoders: str = "minilm",
    own: list[str] | None = None,
    also: list[Path] | None = None,
    cache: Path = CACHE,
    rule: list[str] | None = None,
    runner: Literal["threads", "dask"] = "threads",
    workers: Annotated[int, typer.Option(min=1)] = 2,
    dask_address: str | None = None,
    report: bool = True,
) -> Output:
    """Train and compare routers: at most 15 settings each, the best five again with four seeds.

    The setting that is chosen is fitted again on other draws of the split, for error bars.

    Writes cells.parquet (one row per fit), standings.json and table.md, and for each
    encoder a folder with the evaluation of the chosen settings and an HTML report.
    A stopped run continues where it was: cells that are there are not run again.

    Examples:

        routeyard zoo run yard/releases/demo/1.0.0 --routers knn,ridge --encoders tfidf --out zoo

        routeyard zoo run RELEASE --routers all --encoders tfidf,minilm --out zoo --runner dask

    Args:
        routers: Names with commas between, or `all`.
        encoders: tfidf, minilm, a name, a folder or a hub id; commas between.
        own: Your own router: module:Class or file.py:Class (this RUNS that code), or a CSV
            or Parquet table of predictions. Again for more.
        rule: Also report the winners under a selection rule: utility:0.3, query-budget:USD,
            sufficient:0.8, mean-budget:USD, batch-budget:USD, threshold:SHARE,
            similarity:0.3. Again for more.
        runner: What runs the fits.
        workers: Threads, or Dask processes.
        dask_address: Scheduler that runs already, tcp://host:8786.
        report: Also evaluate the winners: intervals, tests, curves, HTML.
    """
    from routeyard.flows.evaluation.zoo_run import run_zoo

    done = run_zoo(
        release,
        out,
        routers=None if routers == "all" else comma_list(routers),
        encoders=comma_list(encoders),
        own=own or (),
        rules=rule or (),
        also=also or (),
        settings=settings,
        cache=cache,
        report=report,
        runner=runner,
        workers=workers,
        dask_address=dask_address,
    )
    return Output(done, (done["path"] / "table.md").read_text(encoding="utf-8"))
