"""`routeyard deploy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json, sealed_off


def command(
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of one that ships.")],
    workspace: Annotated[
        Path,
        typer.Option(callback=sealed_off, help="Folder of ledger, stage outputs and releases."),
    ] = Path("yard"),
    cron: Annotated[
        str | None, typer.Option(help="Cron schedule in UTC; '0 6 * * 1' is every Monday at six.")
    ] = None,
    interval: Annotated[
        int | None, typer.Option(min=60, help="Schedule: seconds between runs.")
    ] = None,
    pool: Annotated[str, typer.Option(help="Prefect work pool; made if missing.")] = "routeyard",
    runner: Annotated[str, typer.Option(help="Task runner: threads or dask.")] = "threads",
    jobs: Annotated[int, typer.Option(min=1, help="Worker threads or Dask processes.")] = 2,
    shards: Annotated[
        int, typer.Option(min=1, help="Parts each model's questions and embedding are cut into.")
    ] = 1,
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
    as_json: Json = False,
) -> None:
    """Register a benchmark's refresh with a Prefect server.

    Each run looks what is stale (sources, pool, prices, scorers, code), rebuilds only
    that, and releases the next version when the gates pass, and publishes it where
    --publish-to says. Runs never overlap.
    Keys of providers stay in the environment of the worker.

    Examples:

        prefect server start --background
        export PREFECT_API_URL=http://127.0.0.1:4200/api
        routeyard deploy demo --workspace yard --interval 60
        prefect worker start --pool routeyard
    """
    from typing import cast, get_args

    from flows.cli.results import print_result
    from flows.deploy import deploy
    from flows.tracking.runners import Runner
    from pipelines.errors import BadInput, did_you_mean

    if runner not in get_args(Runner):
        raise BadInput(
            f"there is no runner {runner!r}", next_step=did_you_mean(runner, get_args(Runner))
        )
    made = deploy(
        recipe,
        workspace,
        cron=cron,
        interval_s=interval,
        pool=pool,
        runner=cast("Runner", runner),
        jobs=jobs,
        dask_address=dask_address,
        notify=notify,
        publish_to=publish_to,
        shards=shards,
        inline=inline,
        deployment=name,
        replace=replace,
    )
    if print_result(made, as_json):
        return
    print(f"deployed  {made.name}")
    for name, slots in made.limits.items():
        print(f"limit     {name}: {slots} calls in flight over all workers")
    if not made.scheduled:
        print("no schedule: it runs when it is asked to (--cron or --interval gives one)")
    if not made.workers:
        print(f"no worker serves the pool {made.pool!r} now: nothing will run until one is started")
        print(f"next      prefect worker start --pool {made.pool}")
    print(f"{'next' if made.workers else '    '}      prefect deployment run '{made.name}'")
