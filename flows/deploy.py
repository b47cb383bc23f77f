"""Registers a benchmark's refresh with a Prefect server: schedule, limits, work pool."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.client.orchestration import get_client
from prefect.exceptions import ObjectNotFound

from routeyard.datacards.card import UNKNOWN, number, sentences
from routeyard.flows import tracking as events
from routeyard.flows.build import build, last_run, stage_row, status
from routeyard.flows.plan import plan_build
from routeyard.flows.publish import check_target, publish_once
from routeyard.flows.recipe import load
from routeyard.flows.tracking import (
    Runner,
    api_configured,
    artifact,
    log,
    on,
    publish_markdown,
    run_name,
    set_limits,
    start,
    stops_in_words,
)
from routeyard.pipelines.collect.plan import provider_of
from routeyard.pipelines.common.errors import GateFailed, VersionExists
from routeyard.pipelines.common.staging import write_json
from routeyard.pipelines.release.manifest import existing, read_manifest
from routeyard.schemas.errors import BadInput, RecipeError, RouteyardError
from routeyard.schemas.recipe import Pool, Recipe
from routeyard.schemas.text import fenced, markdown, one_line

# What a run shows: plan, spend, health, audit findings, certificate and diff.
#
# Each function gives plain rows; `publish` shows them as Prefect artifacts in a
# tracked run, so that the same figures can be read without the UI.

Rows = list[dict[str, Any]]


def spend(stage: Path) -> Rows:
    """Answers, tokens and USD per model; `unpriced` counts answers whose cost is unknown."""
    return _ask("spend", stage)


def health(stage: Path) -> Rows:
    """How each model answered: status counts, attempts, latency in seconds."""
    return _ask("health", stage)


def findings(stage: Path) -> Rows:
    """Findings of the metering audit, as its stage wrote them; a row that says so for none."""
    path = stage / "findings.json"
    data: Rows = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    return data or [{"finding": "none"}]


def certificate(stage: Path) -> Rows:
    """The certificate: verdict, figures and accuracy of routers, in the words of the card."""
    path = stage / "certificate.json"
    if not path.is_file():
        return []
    record: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    rows = [("verdict", record["verdict"], "", record["words"])]
    rows += [(item.name, item.value, item.interval, item.sentence) for item in sentences(record)]
    for item in record["routers"]:
        gain, low, high = (_points(item[name]) for name in ("gain", "gain_low", "gain_high"))
        says = f"{gain} on the best single model, {low} to {high}"
        rows.append((f"router {item['router']}", number(item["accuracy"], "share"), "", says))
    return [dict(zip(("figure", "value", "interval", "says"), row, strict=True)) for row in rows]


def _points(value: float | None) -> str:
    return UNKNOWN if value is None else number(value, "points")


def difference(before: Path | None, after: Path) -> Rows:
    """Tables whose content differs between two releases, and by how many rows.

    Measured times do not count as a difference.
    """

    new = read_manifest(after).tables
    old = read_manifest(before).tables if before else {}
    rows: Rows = []
    for name in sorted({*old, *new}):
        was, now = old.get(name), new.get(name)
        same = was and now and was.content_without_times == now.content_without_times
        counts = {"before": was.rows if was else None, "after": now.rows if now else None}
        rows.append({"table": name, **counts, "changed": not same})
    return rows


def publish(benchmark: str, key: str, rows: Rows, description: str) -> None:
    """Rows as a table artifact; nothing for no rows."""
    if rows:
        shown = [{name: cell(value) for name, value in row.items()} for row in rows]
        artifact("table", benchmark, key, description, table=shown)


def cell(value: Any) -> Any:
    """A value of a table as a page may show it: pages make links of `[text](address)`.

    Scalars stay; what is neither is short JSON.
    """
    if value is None or isinstance(value, int | float):
        return value
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True)
        value = value if len(value) <= 500 else value[:497] + "…"
    return markdown(value) if "](" in value or "<" in value else one_line(value)


def publish_link(benchmark: str, key: str, to: str, description: str) -> None:
    """Where something is stored, in a tracked run: a link that opens, or words to copy.

    Browsers open no `file://` from a page that came by HTTP, so a folder is text.
    """
    if address := web_address(to):
        artifact("link", benchmark, key, description, link=address, link_text=to)
    else:
        publish_markdown(benchmark, key, f"{description}:\n\n{fenced(to)}", description)


def web_address(to: str) -> str | None:
    """What a browser opens for a place: a hub dataset's page, a web address, or nothing."""
    if to.startswith("hub:"):
        import os

        home = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
        return f"{home}/datasets/{to.removeprefix('hub:')}"
    return to if to.startswith(("https://", "http://")) else None


def _ask(query: str, stage: Path) -> Rows:
    """What a query beside this module finds in the responses of a stage."""
    import duckdb

    files = [str(path) for path in sorted((stage / "responses").glob("*.parquet"))]
    if not files:
        return []
    with duckdb.connect() as connection:
        sql = Path(__file__).with_name(f"{query}.sql").read_text(encoding="utf-8")
        result = connection.execute(sql, [files])
        names = [column[0] for column in result.description or ()]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


# What changed outside the workspace: revisions at the hub, models and prices at the providers.
#
# A recipe stays what its author wrote: what is found here is reported. A model
# counts as retired when its provider listed it at the last release and lists it
# no more; nothing follows from a provider that lists nothing.

#: provider → names it listed.
Listed = dict[str, list[str]]


@dataclass(frozen=True)
class Changes:
    """What was found.

    Attributes:
        rows: One per finding: stage, state (`newer exists`, `follows`, `retired`, `not
            listed`, `new`, `price differs`, `unknown`) and why.
        retired: Models of the pool that their provider lists no more.
        listed: What each provider that answered lists now.
    """

    rows: list[dict[str, str]]
    retired: list[str]
    listed: Listed


def changes(recipe: Recipe, root: Path) -> Changes:
    """Look at the hub and at the providers of a pool that is asked; spends nothing."""
    rows = _revisions(recipe)
    if recipe.collect.provider == "recorded":
        return Changes(rows, [], {})

    pool = recipe.pool
    result, retired, listed = _models(pool, remembered(root, recipe.name))
    return Changes([*rows, *result, *_prices(pool)], retired, listed)


def stop_if_retired(changed: Changes, planned: Mapping[str, Any]) -> None:
    """Refuse to spend money on a benchmark that cannot become whole.

    A retired model whose answers are all in the ledger stops nothing.

    Args:
        planned: What `routeyard.flows.plan.plan_build` reports as missing.

    Raises:
        RecipeError: answers of a retired model are missing.
    """
    missing = {m["model_id"]: m["missing"] for m in planned["models"] if m["missing"]}
    gone = {name: missing[name] for name in changed.retired if name in missing}
    if gone:
        names = ", ".join(f"{name} ({count:,} answers missing)" for name, count in gone.items())
        raise RecipeError(
            f"{len(gone)} models of the pool are listed by their provider no more: {names}",
            where="pool.models; nothing was asked",
            next_step="take them out of the pool, or give 'endpoint_model' the new name; where "
            f"only the list is wrong, remove runs/{planned['benchmark']}.listed.json",
        )


def remembered(root: Path, name: str) -> Listed:
    """What the providers listed at the last release; empty before the first."""
    path = _file(root, name)
    if not path.is_file():
        return {}
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return {str(k): [str(item) for item in v] for k, v in data.items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise BadInput(
            f"the record of listed models is damaged: {error}",
            where=str(path),
            next_step="remove the file; only the search for retired models needs it",
        ) from error


def remember(changed: Changes, root: Path, name: str) -> None:
    """Keep what the providers list; one that did not answer keeps its last list."""
    before = remembered(root, name)
    now = before | changed.listed
    if now != before:
        write_json(_file(root, name), now)


def _file(root: Path, name: str) -> Path:
    return root / "runs" / f"{name}.listed.json"


def _revisions(recipe: Recipe) -> list[dict[str, str]]:
    from routeyard.pipelines.ingest import revisions

    rows = []
    for item in revisions(recipe.sources):
        source = f"source {item.source!r}"
        if item.newest is None:
            rows.append(stage_row("ingest", "unknown", f"{source}: {item.why}"))
        elif item.newer_exists:
            why = f"{source} is pinned to {item.wanted}; {item.hub_id} has {item.newest}"
            rows.append(stage_row("ingest", "newer exists", why))
        elif not item.pinned:
            branch = item.wanted or "the default branch"
            why = f"{source} follows {branch} of {item.hub_id}, now {item.newest}"
            rows.append(stage_row("ingest", "follows", why))
    return rows


def _models(pool: Pool, before: Listed) -> tuple[list[dict[str, str]], list[str], Listed]:
    """(findings, retired models, what is listed now)."""
    from routeyard.pipelines.collect.client import list_models

    rows: list[dict[str, str]] = []
    retired: list[str] = []
    now: Listed = {}
    asked = [(m, provider_of(m, pool)) for m in pool.models if m.relay is None]
    for provider in pool.providers:
        models = list_models(provider)
        if models.models is None:
            rows.append(stage_row("pool", "unknown", f"models of {provider.name!r}: {models.why}"))
            continue
        now[provider.name] = sorted(models.models)
        known = before.get(provider.name, [])
        for model, served_by in asked:
            name = model.endpoint_model or model.model_id
            if served_by.name != provider.name or name in models.models:
                continue
            if name in known:
                retired.append(model.model_id)
                why = f"{model.model_id}: {provider.name!r} lists it no more"
                rows.append(stage_row("pool", "retired", why))
            else:
                # Aliases and routes ("model:fast") are served and never listed.
                why = f"{model.model_id}: {provider.name!r} does not list it, and never did"
                rows.append(stage_row("pool", "not listed", why))
        if known and (new := sorted(models.models - set(known))):
            names = ", ".join(new[:20]) + (f" and {len(new) - 20} more" if len(new) > 20 else "")
            rows.append(stage_row("pool", "new", f"{provider.name!r} now lists {names}"))
    return rows, retired, now


def _prices(pool: Pool) -> list[dict[str, str]]:
    """Where a provider's own price list differs from the pool."""
    from datetime import UTC, datetime

    from routeyard.pipelines.collect.prices import fetch_prices

    rows = []
    today = datetime.now(UTC).date().isoformat()
    for provider in pool.providers:
        if provider.price_list is None:
            continue
        try:
            table = fetch_prices(provider, read_on=today)
        except BadInput as error:
            rows.append(stage_row("pool", "unknown", f"prices of {provider.name!r}: {error.what}"))
            continue
        for model in pool.models:
            if model.relay is not None:
                continue
            price = table.find(model.endpoint_model, model.model_id)
            if price is None or provider_of(model, pool).name != provider.name:
                continue
            stated, now = (model.price_in, model.price_out), (price.input, price.output)
            if now != stated and None not in now:
                why = f"{model.model_id}: the pool says {_usd(stated)}, the provider {_usd(now)}"
                rows.append(stage_row("pool", "price differs", why))
    return rows


def _usd(price: tuple[float | None, float | None]) -> str:
    price_in, price_out = ("unknown" if item is None else f"{item:g}" for item in price)
    return f"{price_in} in and {price_out} out"


_HOUR = 3600.0


@flow(name="routeyard-refresh", flow_run_name=run_name("refresh"), timeout_seconds=24 * _HOUR)
def refresh(
    recipe: str,
    workspace: str = "yard",
    jobs: int = 2,
    runner: Runner = "threads",
    dask_address: str | None = None,
    publish_to: str | None = None,
    shards: int = 1,
) -> dict[str, Any]:
    """Rebuild what is stale of a benchmark, release it under the next version, and publish it.

    Nothing is done when sources, pool, prices, scorers and code are as they
    were. When a gate fails, the run stops with a report and nothing is released
    or published. When a model is retired of which answers are missing, the run
    stops before any money is spent.

    Args:
        recipe: Path of a recipe, or the name of one that ships.
        workspace: Folder of ledger, stage outputs and releases.
        jobs: Worker threads, or processes of a local Dask cluster.
        runner: `threads` or `dask`.
        dask_address: Scheduler of a Dask cluster that runs already.
        publish_to: `hub:org/name`, a URL or a folder that new releases are sent to.
        shards: Parts that each model's questions, and the embedding, are cut into.

    Returns:
        `{"status": "unchanged"}`, or the summary of the build with `"status": "released"` and
        the stages that came out differently as `"rebuilt"`; with both what changed outside
        (`"changes"`) and where the release was sent in this run (`"published"`, or null).
    """
    from routeyard.flows.workspace import fixtures

    stops_in_words()
    checked, _ = load(recipe)
    root = Path(workspace).absolute()
    with fixtures(checked, root):
        try:
            if publish_to:
                check_target(publish_to)
            building = on(build, runner, workers=jobs, dask_address=dask_address)
            parameters = {"recipe": recipe, "workspace": str(root), "jobs": jobs, "shards": shards}
            return _refresh(building, parameters, checked, publish_to)
        except RouteyardError as error:
            kind = "gate failed" if isinstance(error, GateFailed) else "stopped"
            log(checked.name, "refresh", f"{kind}: {error}", error=True)
            if isinstance(error, GateFailed):
                events.emit(events.GATE_FAILED, checked.name, says=str(error), where=error.where)
            publish_markdown(
                checked.name, "stopped", f"# {checked.name}: {kind}\n\n{fenced(str(error))}", kind
            )
            raise


def _refresh(
    building: Any, parameters: dict[str, Any], checked: Recipe, publish_to: str | None
) -> dict[str, Any]:
    """The refresh with `building`, the build on its task runner, and the parameters it gets."""

    recipe, root = parameters["recipe"], Path(parameters["workspace"])
    rows = status(recipe, str(root))
    outside = changes(checked, root)
    plan = [*rows, *outside.rows]
    publish(
        checked.name, "plan", plan, f"{checked.name}: what is stale, what changed outside, and why"
    )
    released = latest(root, checked.name)
    fresh = all(row["state"] == "fresh" for row in rows if row["stage"] != "release")
    before = last_run(root, recipe).get("stages", {})
    if released and fresh and before and read_manifest(released).stages == before:
        text = f"{checked.name} is up to date with {released.name}: nothing was done."
        publish_markdown(checked.name, "refresh", text, "nothing changed")
        log(checked.name, "refresh", text)
        done = {"status": "unchanged", "release": str(released), "changes": outside.rows}
        return {**done, "published": _publish(checked, released, publish_to, root)}
    if outside.retired:
        stop_if_retired(outside, plan_build(recipe, str(root)))
    summary = _build(building, parameters)
    now = last_run(root, recipe).get("stages", {})
    summary["rebuilt"] = sorted(name for name in now if now[name] != before.get(name))
    summary["changes"] = outside.rows
    path = Path(summary["release"]["path"])
    _show(recipe, checked.name, root, released, path)
    remember(outside, root, checked.name)
    summary["published"] = _publish(checked, path, publish_to, root)
    if released and path == released:
        return {"status": "unchanged", **summary}
    why = [f"{row['stage']}: {row['why']}" for row in rows if row["state"] == "stale"]
    about = {"version": path.name, "path": str(path), "published": summary["published"]}
    events.emit(events.RELEASED, checked.name, **about, why=why)
    return {"status": "released", **summary}


def _publish(checked: Recipe, release: Path, to: str | None, root: Path) -> str | None:
    """Where the release is now, when this run sent it there."""
    if to is None or (sent := publish_once(release, to, root)) is None:
        return None
    text = f"{checked.name} {release.name}: {len(sent.files)} of {sent.of} files to {sent.where}"
    log(checked.name, "publish", text)
    publish_link(checked.name, "published", sent.where, text)
    return sent.where


def _build(building: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    """Build; where the version is taken by other content, build the one that follows it.

    Everything up to the release is reused, so the second build costs seconds.
    """
    version: str | None = None
    for _ in range(3):
        try:
            return start(building, **parameters, version=version)  # type: ignore[no-any-return]
        except VersionExists as taken:
            match = re.search(r"version: (\d+\.\d+\.\d+)", taken.next_step or "")
            if not match or match[1] == version:
                raise
            version = match[1]
    where = str(Path(parameters["workspace"]) / "releases")
    raise VersionExists(f"no free version was found for {parameters['recipe']}", where=where)


def _show(recipe: str, name: str, root: Path, before: Path | None, after: Path) -> None:
    """Artifacts of a build: spend, health, audit, certificate, diff and a link to the release."""
    folders = {k: root / v for k, v in last_run(root, recipe).get("folders", {}).items()}
    shown = [
        ("collect", "spend", spend, "tokens and USD per model"),
        ("collect", "health", health, "how models answered"),
        ("audit", "audit", findings, "metering audit"),
        ("certify", "certificate", certificate, "routability certificate"),
    ]
    for stage, key, rows, says in shown:
        if stage in folders:
            publish(name, key, rows(folders[stage]), f"{name}: {says}")
    against = before.name if before else "nothing"
    changes = difference(before, after)
    publish(name, "diff", changes, f"{name}: {after.name} against {against}")
    publish_link(name, "release", str(after), f"{name} {after.name}")


def latest(root: Path, name: str) -> Path | None:
    """Folder of the newest release of a benchmark, or None."""

    folder = root / "releases" / name
    versions = existing(folder)
    return folder / ".".join(map(str, versions[-1])) if versions else None


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
    publish_to: str | None = None,
    shards: int = 1,
    deployment: str | None = None,
    replace: bool = False,
) -> Deployed:
    """Register the refresh of a benchmark.

    Args:
        deployment: Name of the deployment; by default the benchmark's.
        replace: Take the place of a deployment of that name that rebuilds something else.

    Raises:
        BadInput: no Prefect server is configured, two schedules or one that cannot be
            read, a target with a password in it, a deployment of that
            name that rebuilds another recipe or workspace.
    """
    from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
    from prefect.types.entrypoint import EntrypointType

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
    if publish_to:
        check_target(publish_to)
        if "://" not in publish_to and not publish_to.startswith("hub:"):
            publish_to = str(Path(publish_to).absolute())

    place = str(workspace.absolute())
    path = str((base / Path(recipe).name).absolute()) if Path(recipe).is_file() else recipe
    parameters: dict[str, Any] = {"recipe": path, "workspace": place}
    parameters |= {"jobs": jobs, "runner": runner, "shards": shards}
    optional = {"dask_address": dask_address, "publish_to": publish_to}
    parameters |= {key: value for key, value in optional.items() if value}
    name = deployment or checked.name
    _check_place(f"{refresh.name}/{name}", parameters, replace=replace)
    limits = set_limits({p.name: p.limits.concurrency for p in checked.pool.providers})
    workers = _make_pool(pool)
    # A run that takes longer than its schedule is not joined by a second one; a run that died
    # while it was being submitted gives its place up after two minutes.
    alone = ConcurrencyLimitConfig(
        limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW, grace_period_seconds=120
    )
    made: Any = refresh.to_deployment(
        name=name, cron=cron, interval=interval_s, parameters=parameters, concurrency_limit=alone,
        enforce_parameter_schema=True, work_pool_name=pool,
        entrypoint_type=EntrypointType.MODULE_PATH, tags=["routeyard", name],
    )  # fmt: skip
    made.apply()
    scheduled = bool(cron or interval_s)
    return Deployed(f"{refresh.name}/{name}", pool, limits, scheduled, workers)


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


def _check_place(name: str, parameters: dict[str, Any], *, replace: bool) -> None:
    """Refuse to take a deployment away from another recipe or workspace.

    Raises:
        BadInput: one of that name rebuilds something else.
    """
    with get_client(sync_client=True) as client:
        try:
            there = client.read_deployment_by_name(name).parameters
        except ObjectNotFound:
            return
    if replace or all(there.get(key) == parameters[key] for key in ("workspace", "recipe")):
        return
    raise BadInput(
        f"a deployment {name!r} exists and rebuilds something else",
        where=f"recipe {there.get('recipe')}, workspace {there.get('workspace')}",
        next_step="give this one its own name with --name, or take the place with --replace",
    )


def _make_pool(pool: str) -> int:
    """Workers of a pool that gave a sign of life of late; the pool is made when it is absent."""
    from prefect.client.schemas.actions import WorkPoolCreate

    with get_client(sync_client=True) as client:
        try:
            client.read_work_pool(pool)
        except ObjectNotFound:
            client.create_work_pool(WorkPoolCreate(name=pool, type="process"))
        workers = client.read_workers_for_work_pool(pool)
    return sum(str(getattr(w.status, "value", w.status)).upper() == "ONLINE" for w in workers)
