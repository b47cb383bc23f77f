"""The scheduled flow: find what changed, rebuild it, compare, publish, or stop and notify."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import flow

from routeyard.flows.build import build
from routeyard.flows.plan import plan_build
from routeyard.flows.publish import check_target, publish_once
from routeyard.flows.recipe import load
from routeyard.flows.status import last_run, status
from routeyard.flows.tracking import artifacts
from routeyard.flows.tracking import run as events
from routeyard.flows.tracking.run import (
    Runner,
    log,
    on,
    publish_markdown,
    run_name,
    start,
    stops_in_words,
)
from routeyard.flows.tracking.run import notify as tell
from routeyard.pipelines.common.errors import GateFailed, VersionExists
from routeyard.pipelines.common.staging import write_json
from routeyard.schemas.errors import BadInput, RecipeError, RouteyardError
from routeyard.schemas.recipe import Pool, Recipe
from routeyard.schemas.text import fenced

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
    found, retired, listed = _models(pool, remembered(root, recipe.name))
    return Changes([*rows, *found, *_prices(pool)], retired, listed)


def stop_if_retired(found: Changes, planned: Mapping[str, Any]) -> None:
    """Refuse to spend money on a benchmark that cannot become whole.

    A retired model whose answers are all in the ledger stops nothing.

    Args:
        planned: What `routeyard.flows.plan.plan_build` reports as missing.

    Raises:
        RecipeError: answers of a retired model are missing.
    """
    missing = {m["model_id"]: m["missing"] for m in planned["models"] if m["missing"]}
    gone = {name: missing[name] for name in found.retired if name in missing}
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
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(k): [str(one) for one in v] for k, v in found.items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise BadInput(
            f"the record of listed models is damaged: {error}",
            where=str(path),
            next_step="remove the file; only the search for retired models needs it",
        ) from error


def remember(found: Changes, root: Path, name: str) -> None:
    """Keep what the providers list; one that did not answer keeps its last list."""
    before = remembered(root, name)
    now = before | found.listed
    if now != before:
        write_json(_file(root, name), now)


def _file(root: Path, name: str) -> Path:
    return root / "runs" / f"{name}.listed.json"


def _revisions(recipe: Recipe) -> list[dict[str, str]]:
    from routeyard.pipelines.ingest import revisions

    rows = []
    for one in revisions(recipe.sources):
        source = f"source {one.source!r}"
        if one.newest is None:
            rows.append(_row("ingest", "unknown", f"{source}: {one.why}"))
        elif one.newer_exists:
            why = f"{source} is pinned to {one.wanted}; {one.hub_id} has {one.newest}"
            rows.append(_row("ingest", "newer exists", why))
        elif not one.pinned:
            branch = one.wanted or "the default branch"
            why = f"{source} follows {branch} of {one.hub_id}, now {one.newest}"
            rows.append(_row("ingest", "follows", why))
    return rows


def _models(pool: Pool, before: Listed) -> tuple[list[dict[str, str]], list[str], Listed]:
    """(findings, retired models, what is listed now)."""
    from routeyard.pipelines.collect.client import list_models
    from routeyard.pipelines.collect.settings import provider_of

    rows: list[dict[str, str]] = []
    retired: list[str] = []
    now: Listed = {}
    asked = [(m, provider_of(m, pool)) for m in pool.models if m.relay is None]
    for provider in pool.providers:
        found = list_models(provider)
        if found.models is None:
            rows.append(_row("pool", "unknown", f"models of {provider.name!r}: {found.why}"))
            continue
        now[provider.name] = sorted(found.models)
        known = before.get(provider.name, [])
        for model, served_by in asked:
            name = model.endpoint_model or model.model_id
            if served_by.name != provider.name or name in found.models:
                continue
            if name in known:
                retired.append(model.model_id)
                why = f"{model.model_id}: {provider.name!r} lists it no more"
                rows.append(_row("pool", "retired", why))
            else:
                # Aliases and routes ("model:fast") are served and never listed.
                why = f"{model.model_id}: {provider.name!r} does not list it, and never did"
                rows.append(_row("pool", "not listed", why))
        if known and (new := sorted(found.models - set(known))):
            names = ", ".join(new[:20]) + (f" and {len(new) - 20} more" if len(new) > 20 else "")
            rows.append(_row("pool", "new", f"{provider.name!r} now lists {names}"))
    return rows, retired, now


def _prices(pool: Pool) -> list[dict[str, str]]:
    """Where a provider's own price list differs from the pool."""
    from datetime import UTC, datetime

    from routeyard.pipelines.collect.prices import fetch_prices
    from routeyard.pipelines.collect.settings import provider_of

    rows = []
    today = datetime.now(UTC).date().isoformat()
    for provider in pool.providers:
        if provider.price_list is None:
            continue
        try:
            table = fetch_prices(provider, read_on=today)
        except BadInput as error:
            rows.append(_row("pool", "unknown", f"prices of {provider.name!r}: {error.what}"))
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
                rows.append(_row("pool", "price differs", why))
    return rows


def _usd(price: tuple[float | None, float | None]) -> str:
    given, taken = ("unknown" if one is None else f"{one:g}" for one in price)
    return f"{given} in and {taken} out"


def _row(stage: str, state: str, why: str) -> dict[str, str]:
    return {"stage": stage, "state": state, "why": why}


_HOUR = 3600.0


@flow(name="routeyard-refresh", flow_run_name=run_name("refresh"), timeout_seconds=24 * _HOUR)
def refresh(
    recipe: str,
    workspace: str = "yard",
    jobs: int = 2,
    runner: Runner = "threads",
    dask_address: str | None = None,
    notify: list[str] | None = None,
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
        notify: Prefect notification blocks (`type/name`) that get releases and failures.
        publish_to: `hub:org/name`, a URL or a folder that new releases are sent to.
        shards: Parts that each model's questions, and the embedding, are cut into.

    Returns:
        `{"status": "unchanged"}`, or the summary of the build with `"status": "released"` and
        the stages that came out differently as `"rebuilt"`; with both what changed outside
        (`"changes"`) and where the release was sent in this run (`"published"`, or null).
    """
    from routeyard.flows.workspace.fixtures import fixtures

    stops_in_words()
    checked, _ = load(recipe)
    root = Path(workspace).absolute()
    with fixtures(checked, root):
        try:
            if publish_to:
                check_target(publish_to)
            building = on(build, runner, workers=jobs, dask_address=dask_address)
            given = {"recipe": recipe, "workspace": str(root), "jobs": jobs, "shards": shards}
            return _refresh(building, given, checked, notify or [], publish_to)
        except RouteyardError as error:
            kind = "gate failed" if isinstance(error, GateFailed) else "stopped"
            log(checked.name, "refresh", f"{kind}: {error}", error=True)
            if isinstance(error, GateFailed):
                events.emit(events.GATE_FAILED, checked.name, says=str(error), where=error.where)
            publish_markdown(
                checked.name, "stopped", f"# {checked.name}: {kind}\n\n{fenced(str(error))}", kind
            )
            tell(notify or [], f"Routeyard: {checked.name} {kind}", str(error))
            raise


@flow(name="routeyard-refresh-inline", flow_run_name=run_name("refresh"))
def refresh_inline(
    recipe: Recipe,
    workspace: str = "yard",
    jobs: int = 2,
    runner: Runner = "threads",
    dask_address: str | None = None,
    notify: list[str] | None = None,
    publish_to: str | None = None,
    shards: int = 1,
) -> dict[str, Any]:
    """Refresh a benchmark whose recipe is written in the Prefect UI, which checks every key.

    Relative paths of the recipe start from the workspace.
    """
    import yaml

    folder = Path(workspace).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{recipe.name}.yaml"
    content = recipe.model_dump(mode="json", exclude_defaults=True)
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return start(  # type: ignore[no-any-return]
        refresh,
        recipe=str(path),
        workspace=workspace,
        jobs=jobs,
        runner=runner,
        dask_address=dask_address,
        notify=notify,
        publish_to=publish_to,
        shards=shards,
    )


def _refresh(
    building: Any,
    given: dict[str, Any],
    checked: Recipe,
    blocks: list[str],
    publish_to: str | None,
) -> dict[str, Any]:
    """The refresh with `building`, the build on its task runner, and the parameters it gets."""
    from routeyard.pipelines.release.manifest import read_manifest

    recipe, root = given["recipe"], Path(given["workspace"])
    rows = status(recipe, str(root))
    outside = changes(checked, root)
    plan = [*rows, *outside.rows]
    artifacts.publish(
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
    summary = _build(building, given)
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
    outside_why = [
        f"{row['state']}: {row['why']}" for row in outside.rows if row["state"] != "follows"
    ]
    sent = [f"published to {summary['published']}"] if summary["published"] else []
    about = {"version": path.name, "path": str(path), "published": summary["published"]}
    events.emit(events.RELEASED, checked.name, **about, why=why)
    tell(
        blocks,
        f"Routeyard: {checked.name} {path.name} released",
        "; ".join(why + outside_why + sent),
    )
    return {"status": "released", **summary}


def _publish(checked: Recipe, release: Path, to: str | None, root: Path) -> str | None:
    """Where the release is now, when this run sent it there."""
    if to is None or (sent := publish_once(release, to, root)) is None:
        return None
    text = f"{checked.name} {release.name}: {len(sent.files)} of {sent.of} files to {sent.where}"
    log(checked.name, "publish", text)
    artifacts.publish_link(checked.name, "published", sent.where, text)
    return sent.where


def _build(building: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Build; where the version is taken by other content, build the one that follows it.

    Everything up to the release is reused, so the second build costs seconds.
    """
    version: str | None = None
    for _ in range(3):
        try:
            return start(building, **given, version=version)  # type: ignore[no-any-return]
        except VersionExists as taken:
            found = re.search(r"version: (\d+\.\d+\.\d+)", taken.next_step or "")
            if not found or found[1] == version:
                raise
            version = found[1]
    where = str(Path(given["workspace"]) / "releases")
    raise VersionExists(f"no free version was found for {given['recipe']}", where=where)


def _show(recipe: str, name: str, root: Path, before: Path | None, after: Path) -> None:
    """Artifacts of a build: spend, health, audit, certificate, diff and a link to the release."""
    folders = {k: root / v for k, v in last_run(root, recipe).get("folders", {}).items()}
    shown = [
        ("collect", "spend", artifacts.spend, "tokens and USD per model"),
        ("collect", "health", artifacts.health, "how models answered"),
        ("audit", "audit", artifacts.findings, "metering audit"),
        ("certify", "certificate", artifacts.certificate, "routability certificate"),
    ]
    for stage, key, rows, says in shown:
        if stage in folders:
            artifacts.publish(name, key, rows(folders[stage]), f"{name}: {says}")
    against = before.name if before else "nothing"
    changes = artifacts.difference(before, after)
    artifacts.publish(name, "diff", changes, f"{name}: {after.name} against {against}")
    artifacts.publish_link(name, "release", str(after), f"{name} {after.name}")


def latest(root: Path, name: str) -> Path | None:
    """Folder of the newest release of a benchmark, or None."""
    from routeyard.pipelines.release.manifest import existing

    folder = root / "releases" / name
    versions = existing(folder)
    return folder / ".".join(map(str, versions[-1])) if versions else None
