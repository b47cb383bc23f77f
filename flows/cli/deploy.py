"""`routeyard deploy`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from routeyard.flows.cli.options import YARD, Shards, WrittenWorkspace
from routeyard.flows.cli.results import Output


def command(
    recipe: str,
    workspace: WrittenWorkspace = YARD,
    cron: str | None = None,
    interval: Annotated[int | None, typer.Option(min=60)] = None,
    pool: str = "routeyard",
    runner: Literal["threads", "dask"] = "threads",
    jobs: Annotated[int, typer.Option(min=1)] = 2,
    shards: Shards = 1,
    dask_address: str | None = None,
    notify: list[str] | None = None,
    publish_to: str | None = None,
    inline: bool = False,
    name: str | None = None,
    replace: Annotated[bool, typer.Option("--replace")] = False,
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

    Args:
        cron: Cron schedule in UTC; '0 6 * * 1' is every Monday at six.
        interval: Schedule: seconds between runs.
        pool: Prefect work pool; made if missing.
        runner: Prefect task runner.
        jobs: Worker threads or Dask processes.
        dask_address: Scheduler of a Dask cluster that runs already.
        notify: Notification block, type/name; may be repeated.
        publish_to: Where new releases go: hub:org/name, a URL (s3://…), or a folder.
        inline: Put the recipe into the parameters, checked in the UI.
        name: Name of the deployment; by default the benchmark's.
        replace: Replace one of that name that rebuilds something else.
    """
    from routeyard.flows.deploy import deploy

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
