"""`routeyard deploy`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from routeyard.flows.cli.options import (
    YARD,
    Jobs,
    ReaskTruncated,
    Shards,
    Workspace,
    WrittenWorkspace,
)
from routeyard.flows.cli.results import Output

# `routeyard build`.


def build_command(
    recipe: str,
    workspace: WrittenWorkspace = YARD,
    jobs: Jobs = 2,
    shards: Shards = 1,
    until: str = "release",
    reask: list[str] | None = None,
    reask_truncated: ReaskTruncated = None,
    scale: float | None = None,
    reuse: bool = False,
    ask_again: bool = False,
) -> Output:
    """Build a benchmark release from a recipe.

    Finished stages are reused, so a stopped build continues where it was.
    `--reask-truncated` and `--reask` are for one run; set `collect.reask_truncated` in the
    recipe to keep to it. After a key was mended, `--reask error` asks what it had refused.

    A release that exists is never overwritten: set a new version in the recipe.

    Examples:

        routeyard build my_benchmark.yaml --workspace yard

        ROUTEYARD_DATA=~/recordings routeyard build zeroeval_gsm

    Args:
        until: Last stage: ingest, collect, label, curate, certify, release.
    """
    from routeyard.flows.build import run_build
    from routeyard.flows.console.summary import show_build
    from routeyard.flows.stages import UNTIL
    from routeyard.schemas.errors import BadInput, did_you_mean

    if until not in UNTIL:
        raise BadInput(f"there is no stage {until!r}", next_step=did_you_mean(until, UNTIL))
    if reuse and ask_again:
        raise BadInput(
            "--reuse and --ask-again say opposite things", next_step="give one of the two"
        )
    summary = run_build(
        recipe,
        str(workspace),
        jobs=jobs,
        until=until,
        collect=collect_changes(reask, reask_truncated),
        shards=shards,
        scale=scale,
        ports="reuse" if reuse else "ask_again" if ask_again else None,
    )
    return Output(summary, lambda: show_build(summary))


def collect_changes(reask: list[str] | None, reask_truncated: int | None) -> dict[str, Any]:
    """Keys of the recipe's section `collect` that options of one run replace."""
    given = {"reask": reask or None, "reask_truncated": reask_truncated}
    return {key: value for key, value in given.items() if value is not None}


# `routeyard plan`.


def plan_command(
    recipe: str,
    workspace: Workspace = YARD,
    reask: list[str] | None = None,
    reask_truncated: ReaskTruncated = None,
    scale: float | None = None,
    read: Annotated[bool, typer.Option("--read")] = False,
) -> Output:
    """Print what a build would ask and what it would cost. Calls no model.

    Answers in the ledger are not asked again and not counted. Token counts come with their
    error; a cost is unknown where a price is. A recipe of hub datasets that states how many
    questions it takes of each is planned from that, without the network.

    Examples:

        routeyard plan demo --workspace yard

        routeyard plan nine_by_30k --scale 0.01

    Args:
        read: Read hub sources even where the recipe states counts.
    """
    from routeyard.flows.console import line

    line("plan", f"reads the sources of {recipe}")
    from routeyard.flows.plan import plan_build, show

    changes = collect_changes(reask, reask_truncated)
    found = plan_build(recipe, str(workspace), changes, scale=scale, read_sources=read)
    return Output(found, lambda: show(found))


# `routeyard rehearse`.


def rehearse_command(
    recipe: str,
    workspace: WrittenWorkspace = YARD,
    copies: Annotated[int, typer.Option(min=1)] = 3,
    real: bool = False,
) -> Output:
    """Build a recipe end to end from fixture rows and a pool on loopback, at no cost.

    Rows written for Routeyard in each dataset's own layout replace the datasets, one local
    server plays every model, verifier and judge, and EmbedLLM is planted. The release is called
    `<recipe>-rehearsal` and its card says what it is. With --real a real small model on this
    machine answers, which takes about half a second a call.

    Example:

        routeyard rehearse nine_by_30k --workspace yard

    Args:
        copies: Variants asked of each fixture row.
        real: A real small model answers in place of the pool's (docs/howto/real_model.md).
    """
    from routeyard.flows.console.summary import show_build
    from routeyard.flows.rehearse import rehearse

    summary = rehearse(recipe, str(workspace), copies=copies, real=real)
    return Output(summary, lambda: show_build(summary))


# `routeyard status`.


def status_command(recipe: str, workspace: Workspace = YARD) -> Output:
    """List which stages are fresh or stale, and why. Makes nothing, calls no model.

    Example:

        routeyard status demo --workspace yard
    """
    from routeyard.flows.status import status

    rows = status(recipe, str(workspace))
    shown = (f"{row['stage']:<9} {row['state']:<8} {row['why']}".rstrip() for row in rows)
    return Output(rows, shown)


def deploy_command(
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
