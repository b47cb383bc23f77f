"""Registers a benchmark's refresh with a Prefect server: schedule, limits, work pool."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.actions.publish import check_target
from flows.recipe import load
from flows.tracking.limits import set_limits
from flows.tracking.notify import check_blocks
from flows.tracking.run import api_configured
from flows.tracking.runners import Runner
from pipelines.errors import BadInput


@dataclass(frozen=True, slots=True)
class Deployed:
    """What was registered.

    Attributes:
        name: `flow/deployment`, as `prefect deployment run` takes it.
        pool: Work pool a worker serves.
        limits: Global concurrency limit → slots.
    """

    name: str
    pool: str
    limits: dict[str, int]


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
) -> Deployed:
    """Register the refresh of a benchmark.

    Args:
        inline: Put the recipe itself into the parameters, where the UI shows and checks
            every key, instead of its path. Keys of providers are never in it.

    Raises:
        BadInput: no Prefect server is configured, two schedules, an unknown block, a
            target with a password in it.
    """
    if not api_configured():
        raise BadInput(
            "no Prefect server is configured",
            next_step="prefect server start --background; "
            "export PREFECT_API_URL=http://127.0.0.1:4200/api",
        )
    if cron and interval_s:
        raise BadInput("a deployment has one schedule", next_step="give --cron or --interval")
    checked, base = load(recipe)
    check_blocks(notify or [])
    if publish_to:
        check_target(publish_to)
        if "://" not in publish_to and not publish_to.startswith("hub:"):
            publish_to = str(Path(publish_to).absolute())
    limits = set_limits({p.name: p.limits.concurrency for p in checked.pool.providers})
    _make_pool(pool)
    from flows.refresh import refresh, refresh_inline

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
    return Deployed(_register(flow, checked.name, given, pool, cron, interval_s), pool, limits)


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


def _make_pool(pool: str) -> None:
    """The work pool, made when it is not there."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import ObjectNotFound

    with get_client(sync_client=True) as client:
        try:
            client.read_work_pool(pool)
        except ObjectNotFound:
            client.create_work_pool(WorkPoolCreate(name=pool, type="process"))
