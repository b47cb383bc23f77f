"""`routeyard deploy`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from flows.cli.options import YARD, Recipe, Shards, WrittenWorkspace
from flows.cli.results import Output


def command(
    recipe: Recipe,
    workspace: WrittenWorkspace = YARD,
    cron: Annotated[
        str | None, typer.Option(help="Cron schedule in UTC; '0 6 * * 1' is every Monday at six.")
    ] = None,
    interval: Annotated[
        int | None, typer.Option(min=60, help="Schedule: seconds between runs.")
    ] = None,
    pool: Annotated[str, typer.Option(help="Prefect work pool; made if missing.")] = "routeyard",
    runner: Annotated[
        Literal["threads", "dask"], typer.Option(help="Prefect task runner.")
    ] = "threads",
    jobs: Annotated[int, typer.Option(min=1, help="Worker threads or Dask processes.")] = 2,
    shards: Shards = 1,
    dask_address: Annotated[
        str | None, typer.Option(help="Scheduler of a Dask cluster that runs already.")
    ] = None,
    notify: Annotated[
        list[str] | None, typer.Option(help="Notification block, type/name; may be repeated.")
    ] = None,
    publish_to: Annotated[
        str | None,
        typer.Option(help="Where new releases go: hub:org/name, a URL (s3://…), or a folder."),
    ] = None,
    inline: Annotated[
        bool, typer.Option(help="Put the recipe into the parameters, checked in the UI.")
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="Name of the deployment; by default the benchmark's.")
    ] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace one of that name that rebuilds something else."),
    ] = False,
) -> Output:
    """Register a benchmark's refresh with a Prefect server.

    Each run finds what is stale (sources, pool, prices, scorers, code), rebuilds only
    that, releases the next version when the gates pass, and publishes it where
    --publish-to says. Runs never overlap.
    Keys of providers stay in the environment of the worker.

    Examples:

        prefect server start --background
        export PREFECT_API_URL=http://127.0.0.1:4200/api
        routeyard deploy demo --workspace yard --interval 60
        prefect worker start --pool routeyard
    """
    from flows.deploy import deploy

    made = deploy(
        recipe,
        workspace,
        cron=cron,
        interval_s=interval,
        pool=pool,
        runner=runner,
        jobs=jobs,
        dask_address=dask_address,
        notify=notify,
        publish_to=publish_to,
        shards=shards,
        inline=inline,
        deployment=name,
        replace=replace,
    )
    lines = [f"deployed  {made.name}"]
    for one, slots in made.limits.items():
        lines.append(f"limit     {one}: {slots} calls in flight over all workers")
    if not made.scheduled:
        lines.append("no schedule: it runs when it is started (--cron or --interval gives one)")
    if not made.workers:
        lines.append(f"no worker serves the pool {made.pool!r}: nothing runs until one is started")
        lines.append(f"next      prefect worker start --pool {made.pool}")
    lines.append(f"{'next' if made.workers else '    '}      prefect deployment run '{made.name}'")
    return Output(made, lines)
