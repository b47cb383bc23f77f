"""Registers a benchmark's refresh with a Prefect server: schedule, limits, work pool."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeyard.flows.publish import check_target
from routeyard.flows.recipe import load
from routeyard.flows.tracking.run import Runner, api_configured, check_blocks, set_limits
from routeyard.pipelines.common.errors import BadInput


@dataclass(frozen=True, slots=True)
class Deployed:
    """What was registered.

    Attributes:
        name: `flow/deployment`, as `prefect deployment run` takes it.
        pool: Work pool a worker serves.
        limits: Global concurrency limit → slots.
        scheduled: Whether runs start on a schedule.
        workers: Workers of the pool that are there now; without one nothing runs.
    """

    name: str
    pool: str
    limits: dict[str, int]
    scheduled: bool = False
    workers: int = 0


def deploy(
    recipe: str,
    workspace: Path,
    *,
    cron: str | None = None,
    interval_s: int | None = None,
    pool: str = "routeyard",
    runner: Runner = "threads",
    jobs: int = 2,
    dask_address: str | None = None,
    notify: list[str] | None = None,
    publish_to: str | None = None,
    shards: int = 1,
    inline: bool = False,
    deployment: str | None = None,
    replace: bool = False,
) -> Deployed:
    """Register the refresh of a benchmark.

    Args:
        inline: Put the recipe itself into the parameters, where the UI shows and checks
            every key, instead of its path. Keys of providers are never in it.
        deployment: Name of the deployment; by default the benchmark's.
        replace: Take the place of a deployment of that name that rebuilds something else.

    Raises:
        BadInput: no Prefect server is configured, two schedules or one that cannot be
            read, an unknown block, a target with a password in it, a deployment of that
            name that rebuilds another recipe or workspace.
    """
    if not api_configured():
        raise BadInput(
            "no Prefect server is configured: nothing was registered, and nothing will run",
            next_step="prefect server start --background; "
            "export PREFECT_API_URL=http://127.0.0.1:4200/api",
        )
    if cron and interval_s:
        raise BadInput("a deployment has one schedule", next_step="give --cron or --interval")
    if cron:
        check_cron(cron)
    checked, base = load(recipe)
    check_blocks(notify or [])
    if publish_to:
        check_target(publish_to)
        if "://" not in publish_to and not publish_to.startswith("hub:"):
            publish_to = str(Path(publish_to).absolute())
    from routeyard.flows.refresh import refresh, refresh_inline

    place = str(workspace.absolute())
    common: dict[str, Any] = {"workspace": place, "notify": notify or []}
    common |= {"jobs": jobs, "runner": runner, "shards": shards}
    if dask_address:
        common["dask_address"] = dask_address
    if publish_to:
        common["publish_to"] = publish_to
    if inline:
        flow: Any = refresh_inline
        given = {"recipe": checked.model_dump(mode="json", exclude_defaults=True), **common}
    else:
        flow = refresh
        path = str((base / Path(recipe).name).absolute()) if Path(recipe).is_file() else recipe
        given = {"recipe": path, **common}
    name = deployment or checked.name
    _check_place(f"{flow.name}/{name}", given, replace=replace)
    limits = set_limits({p.name: p.limits.concurrency for p in checked.pool.providers})
    workers = _make_pool(pool)
    registered = _register(flow, name, given, pool, cron, interval_s)
    return Deployed(registered, pool, limits, bool(cron or interval_s), workers)


def check_cron(cron: str) -> None:
    """Refuse a schedule that Prefect cannot read, in one line.

    Raises:
        BadInput: says what a schedule looks like.
    """
    from prefect.client.schemas.schedules import CronSchedule
    from pydantic import ValidationError

    try:
        CronSchedule(cron=cron)
    except (ValidationError, ValueError) as error:
        raise BadInput(
            f"{cron!r} is no cron schedule",
            where="--cron",
            next_step="five fields: minute hour day month weekday, e.g. '0 6 * * 1' for Mondays "
            "at six",
        ) from error


def _check_place(name: str, given: dict[str, Any], *, replace: bool) -> None:
    """Refuse to take a deployment away from another recipe or workspace.

    Raises:
        BadInput: one of that name rebuilds something else.
    """
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    with get_client(sync_client=True) as client:
        try:
            there = client.read_deployment_by_name(name).parameters
        except ObjectNotFound:
            return
    if replace or there.get("workspace") == given["workspace"]:
        same = isinstance(given["recipe"], dict) or there.get("recipe") == given["recipe"]
        if replace or same:
            return
    raise BadInput(
        f"a deployment {name!r} exists and rebuilds something else",
        where=f"recipe {_short(there.get('recipe'))}, workspace {there.get('workspace')}",
        next_step="give this one its own name with --name, or take the place with --replace",
    )


def _short(recipe: Any) -> str:
    return f"{recipe.get('name')} (inline)" if isinstance(recipe, dict) else str(recipe)


def _register(
    flow: Any,
    name: str,
    given: dict[str, Any],
    pool: str,
    cron: str | None,
    interval_s: int | None,
) -> str:
    from prefect.client.schemas.objects import (
        ConcurrencyLimitConfig,
        ConcurrencyLimitStrategy,
    )
    from prefect.types.entrypoint import EntrypointType

    made = flow.to_deployment(
        name=name,
        cron=cron,
        interval=interval_s,
        parameters=given,
        # A run that takes longer than its schedule is not joined by a second one.
        concurrency_limit=ConcurrencyLimitConfig(
            limit=1,
            collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW,
            # A run that died while it was being submitted gives its place up after this.
            grace_period_seconds=120,
        ),
        enforce_parameter_schema=True,
        work_pool_name=pool,
        entrypoint_type=EntrypointType.MODULE_PATH,
        tags=["routeyard", name],
    )
    made.apply()
    return f"{flow.name}/{name}"


def _make_pool(pool: str) -> int:
    """Workers of a pool that gave a sign of life of late; the pool is made when it is absent."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import ObjectNotFound

    with get_client(sync_client=True) as client:
        try:
            client.read_work_pool(pool)
        except ObjectNotFound:
            client.create_work_pool(WorkPoolCreate(name=pool, type="process"))
        found = client.read_workers_for_work_pool(pool)
    return sum(str(getattr(one.status, "value", one.status)).upper() == "ONLINE" for one in found)
