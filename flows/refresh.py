"""The scheduled flow: find what changed, rebuild it, compare, publish, or stop and notify."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from prefect import flow

from routeyard.flows.build import build
from routeyard.flows.changes import changes, remember, stop_if_retired
from routeyard.flows.plan import plan_build
from routeyard.flows.publish import check_target, publish_once
from routeyard.flows.recipe import load
from routeyard.flows.status import last_run, status
from routeyard.flows.tracking import artifacts, events
from routeyard.flows.tracking.log import log, stops_in_words
from routeyard.flows.tracking.notify import notify as tell
from routeyard.flows.tracking.run import publish_markdown, run_name, start
from routeyard.flows.tracking.runners import Runner, on
from routeyard.pipelines.errors import GateFailed, RouteyardError, VersionExists
from routeyard.schemas.recipe import Recipe
from routeyard.schemas.untrusted_text import fenced

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
    from routeyard.pipelines.release.versions import existing

    folder = root / "releases" / name
    versions = existing(folder)
    return folder / ".".join(map(str, versions[-1])) if versions else None
