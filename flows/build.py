"""The build: sources and a pool in, a release out. The one place where stages have an order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from prefect import flow

from flows import console
from flows.console.summary import markdown
from flows.recipe import load, with_collect
from flows.scaling import scaled
from flows.tasks.collect import collect_stage
from flows.tasks.curate import curate_task
from flows.tasks.embed import embed_stage
from flows.tasks.ingest import ingest_task, pool_task
from flows.tasks.label import label_stage
from flows.tasks.release import audit_task, certify_task, check_metering, release_task
from flows.tracking.assets import materialising
from flows.tracking.log import log, stops_in_words
from flows.tracking.run import call, publish_markdown, start, tracked
from flows.workspace.fixtures import fixtures
from flows.workspace.stage_folders import PROBING, StageResult
from pipelines.io.staging import write_json
from schemas.recipe import Recipe

#: The stages a build can stop after, in order.
STAGES = ("ingest", "collect", "label", "curate", "certify", "release")


@flow(name="routeyard-build", flow_run_name="build {recipe}")
def build(
    recipe: str,
    workspace: str = "yard",
    jobs: int = 2,
    until: str = "release",
    version: str | None = None,
    collect: dict[str, Any] | None = None,
    shards: int = 1,
    scale: float | None = None,
) -> dict[str, Any]:
    """Build a benchmark release from a recipe.

    Args:
        recipe: Path of a recipe, or the name of one that ships.
        workspace: Folder of ledger, stage outputs and releases.
        jobs: Worker processes for labelling and for shards.
        until: Last stage to run.
        version: Version to release instead of the recipe's.
        collect: Keys of the recipe's `collect` section to set otherwise.
        shards: Parts that each model's questions, and the embedding, are cut into; changes
            nothing but who works on what.
        scale: Shrink every count of questions to this share.

    Returns:
        JSON-ready summary: stages with fingerprint and whether they were
        reused; with a release also its path, status and figures.
    """
    stops_in_words()
    checked, base = load(recipe)
    if version is not None:
        checked = checked.model_copy(update={"version": version})
    checked = scaled(with_collect(checked, collect or {}), scale)
    root = Path(workspace).absolute()
    root.mkdir(parents=True, exist_ok=True)
    if until == "release" and (root / "releases" / checked.name / checked.version).is_dir():
        console.line(
            "note",
            f"{checked.name} {checked.version} is released already and is never overwritten: "
            "if this build gives another, set a new 'version' (`routeyard plan` says)",
        )
    with fixtures(checked, root):
        return _stages(checked, recipe, base, root, jobs=jobs, shards=shards, until=until)


def _stages(
    checked: Recipe, recipe: str, base: Path, root: Path, *, jobs: int, shards: int, until: str
) -> dict[str, Any]:
    done: dict[str, StageResult] = {}

    def finished(name: str, stage: StageResult, text: str) -> None:
        done[name] = stage
        if PROBING.get():
            return
        console.line(name, text + (" (unchanged)" if stage.reused else ""))
        record = {key: [one.fingerprint, one.folder] for key, one in done.items()}
        _remember(root, checked, recipe, record)

    queries = call(ingest_task, recipe=checked, base=str(base), root=str(root))
    finished("ingest", queries, f"{queries.figures['queries']:,} questions")
    _tell(queries)
    pool = call(pool_task, recipe=checked, root=str(root))
    finished("pool", pool, f"{pool.figures['models']} models")
    if until == "ingest":
        return _summary(done)

    collected = collect_stage(checked, base, root, queries, pool, shards=shards, jobs=jobs)
    finished("collect", collected, f"{collected.figures['responses']:,} responses")
    _tell(collected)
    if until == "collect":
        return _summary(done)

    labelled = label_stage(checked, root, queries, collected, jobs=jobs)
    text = f"{labelled.figures['labels']:,} labels, {labelled.figures['undecided']:,} undecided"
    finished("label", labelled, text)
    if until == "label":
        return _summary(done)

    embedded = None
    if needs_embeddings(checked):
        embedded = embed_stage(checked, root, queries, shards=shards, jobs=jobs)
        finished("embed", embedded, f"{embedded.figures['embeddings']:,} questions")
    curated = call(
        curate_task,
        recipe=checked,
        root=str(root),
        queries=queries,
        pool=pool,
        collected=collected,
        labelled=labelled,
        embedded=embedded,
    )
    finished("curate", curated, f"{len(checked.curate)} rules")
    if until == "curate":
        return _summary(done)

    audited = call(audit_task, recipe=checked, root=str(root), curated=curated, collected=collected)
    finished("audit", audited, _audit_words(audited))
    for waiver in checked.release.waivers:
        console.line("waived", f"{waiver.gate}: {waiver.reason}")
    check_metering(checked, audited)
    certified = call(
        certify_task, recipe=checked, root=str(root), curated=curated, embedded=embedded
    )
    finished("certify", certified, str(certified.figures.get("verdict", "")))
    if until == "certify":
        return _summary(done)

    releasing = materialising(release_task, checked) if tracked() else release_task
    released = call(releasing, recipe=checked, root=str(root), stages=done)
    console.line("release", f"{released['path']} ({released['status']})")
    log(checked.name, "release", f"{released['path']} ({released['status']})")
    text = markdown(Path(released["path"]))
    publish_markdown(checked.name, "summary", text, f"{checked.name} summary")
    return {**_summary(done), "release": released}


def needs_embeddings(recipe: Recipe) -> bool:
    """True when a curation rule reads the `embeddings` table, or the release is to hold it."""
    from pipelines.curate import RULES

    return recipe.release.include_embeddings or any(
        "embeddings" in RULES.get(rule.rule).reads for rule in recipe.curate
    )


def run_build(
    recipe: str | Path,
    workspace: str | Path = "yard",
    *,
    jobs: int = 2,
    until: str = "release",
    collect: dict[str, Any] | None = None,
    shards: int = 1,
    scale: float | None = None,
) -> dict[str, Any]:
    """Build a release: `build` through Prefect when an API is configured, directly otherwise.

    Args, returns: see `build`.

    Raises:
        RecipeError: the recipe does not fit.
        GateFailed: a gate stops the release. BudgetReached, ProviderError: answers are missing.
    """
    return start(  # type: ignore[no-any-return]
        build,
        recipe=str(recipe),
        workspace=str(workspace),
        jobs=jobs,
        until=until,
        collect=collect,
        shards=shards,
        scale=scale,
    )


def _audit_words(audited: StageResult) -> str:
    found, waived = audited.figures["findings"], audited.figures["waived"]
    return f"{len(found)} findings on metering, {len(waived)} of them waived by the recipe"


def _tell(stage: StageResult) -> None:
    """What the stage's figures do not tell, before anything further is paid for."""
    for note in () if PROBING.get() else stage.figures.get("notes") or ():
        console.line("note", note)


def _summary(done: dict[str, StageResult]) -> dict[str, Any]:
    return {
        "stages": {
            name: {"fingerprint": one.fingerprint, "reused": one.reused, "figures": one.figures}
            for name, one in done.items()
        }
    }


def _remember(root: Path, recipe: Recipe, said: str, record: dict[str, list[str]]) -> None:
    """What the last build of this benchmark used; `routeyard status` and `relabel` read it.

    Stages that this build did not reach stay as they were recorded, unless one before them
    now gives something else: they are made of what is no longer there, and are only among those
    that were once reached.
    """
    path = root / "runs" / f"{recipe.name}.json"
    stages = {name: pair[0] for name, pair in record.items()}
    folders = {name: str(Path(pair[1]).relative_to(root)) for name, pair in record.items()}
    before = _recorded(path)
    reached = [*before["reached"], *(name for name in stages if name not in before["reached"])]
    if all(before["stages"].get(name, now) == now for name, now in stages.items()):
        stages = {**before["stages"], **stages}
        folders = {**before["folders"], **folders}
    write_json(
        path,
        {
            "benchmark": recipe.name,
            "recipe": said,
            "version": recipe.version,
            "stages": stages,
            "folders": folders,
            "reached": reached,
        },
    )


def _recorded(path: Path) -> dict[str, Any]:
    """Stages, their folders and those once reached; empty where no record can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        stages, folders = (dict(found[key]) for key in ("stages", "folders"))
        # Records of older versions know of the last build alone.
        return {"stages": stages, "folders": folders, "reached": list(found.get("reached", stages))}
    except (OSError, ValueError, KeyError, TypeError):
        return {"stages": {}, "folders": {}, "reached": []}
