"""The build: sources and a pool in, a release out; and what of it is fresh or stale."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from routeyard.datacards.charts import NO_ROOM, can_draw
from routeyard.flows import console
from routeyard.flows.console import BuildResult
from routeyard.flows.recipe import load, scaled, with_collect
from routeyard.flows.stages import RELEASE, STAGES, Stage, walk
from routeyard.flows.summary import markdown
from routeyard.flows.tasks.curate import identity_of
from routeyard.flows.tracking import (
    Deferred,
    call,
    each,
    log,
    materialising,
    publish_markdown,
    run_name,
    start,
    stops_in_words,
    tracked,
)
from routeyard.flows.workspace import (
    CARD,
    BuildContext,
    PendingAnswers,
    StageResult,
    check_build,
    complete_stage,
    find_stage,
    fixtures,
    intact,
    keeping,
    last_builds,
    reached_code,
)
from routeyard.pipelines.common import files as named_files
from routeyard.pipelines.common.staging import write_json
from routeyard.schemas.recipe import Recipe


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
        collect: Keys of the recipe's `collect` section to set otherwise; and what this run asks
            again: `reask` (outcomes), `reask_truncated` (a limit of tokens).
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
        checked = checked.but(version=version)
    checked = scaled(with_collect(checked, collect or {}), scale)
    root = Path(workspace).absolute()
    root.mkdir(parents=True, exist_ok=True)
    if until == "release" and (root / "releases" / checked.name / checked.version).is_dir():
        console.line(
            "note",
            f"{checked.name} {checked.version} is released already and is never overwritten: "
            "if this build gives another, set a new 'version' (`routeyard plan` says)",
        )
    context = BuildContext(checked.name, root, base, jobs, shards)
    if checked.hidden_states is not None:
        identity_of(checked.hidden_states.weights)  # before anything is paid for
    with fixtures(checked, root), keeping():
        return _stages(checked, recipe, context, until)


_BUILD = Deferred("flow", build, {"name": "routeyard-build", "flow_run_name": run_name("build")})
del build


def __getattr__(name: str) -> Any:
    """The Prefect flow `build`, which deployments name; Prefect is imported with it."""
    if name == "build":
        return _BUILD.made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _stages(recipe: Recipe, recipe_path: str, context: BuildContext, until: str) -> dict[str, Any]:
    done: dict[str, StageResult] = {}
    releases = until == RELEASE.until
    check_build(0)
    if releases and not can_draw():
        console.line("note", f"plots are left out of the release: {NO_ROOM}")
    for stage, results in walk(recipe, context, Completing(context), until):
        unchanged = " (unchanged)" if results[0].reused and not stage.part_of else ""
        for line in stage.lines(results[0].figures):
            console.line(stage.name, line + unchanged)
        if stage.part_of:
            continue
        (done[stage.name],) = results
        _remember(context.root, recipe, recipe_path, done)
        for note in results[0].figures.get("notes") or ():
            console.line("note", note)
        if stage.makes == "audited":
            for waiver in recipe.release.waivers:
                console.line("waived", f"{waiver.gate}: {waiver.reason}")
        if stage.makes == "models" and until != stage.until:
            pairs = done["ingest"].figures["queries"] * results[0].figures["models"]
            check_build(pairs * recipe.collect.samples, _recorded_files(recipe, context))
        if stage.check:
            stage.check(context, results[0])
    if not releases:
        return _summary(done)
    plain = Deferred("task", RELEASE.function, {"name": RELEASE.name, "persist_result": True})
    releasing = materialising(plain.made, recipe) if tracked() else plain
    released = call(releasing, context=context, recipe=recipe, stages=done)
    _remember(context.root, recipe, recipe_path, done, reached_code(CARD))
    line = f"{released['path']} ({released['status']})"
    console.line("release", line)
    log(recipe.name, "release", line)
    if tracked():
        text = markdown(Path(released["path"]))
        publish_markdown(recipe.name, "summary", text, f"{recipe.name} summary")
    return {**_summary(done), "release": released}


def _recorded_files(recipe: Recipe, context: BuildContext) -> list[Path]:
    """Files of recorded answers that a build reads."""
    where = "collect.recorded"
    return [
        file
        for entry in recipe.collect.recorded
        for file in named_files.expand(entry.path, base=context.base, where=where)
    ]


class Completing:
    """Makes a stage's results, or reuses them; Prefect tasks in a tracked run."""

    def __init__(self, context: BuildContext) -> None:
        self.context = context

    def __call__(
        self, stage: Stage, parts: Sequence[Mapping[str, Any]], processes: int
    ) -> list[StageResult]:
        # Rounds of an informative collection are asked by one process.
        if stage.shards and self.context.shards > 1 and "rows" not in parts[0]:
            stage.shards(self.context, **parts[0])
        options = {"name": stage.task or stage.name, "persist_result": True, **stage.retries}
        made = Deferred("task", complete_stage, options)
        common = {"stage": stage.name, "function": stage.function, "context": self.context}
        if stage.each is None:
            return [call(made, **common, given=parts[0])]
        calls = [
            {**common, "given": item, "shard": (number, len(parts))}
            for number, item in enumerate(parts, 1)
        ]
        with console.counter(stage.part_of or stage.name, "models") as count:
            return each(made, calls, processes=processes, on_done=count)


def run_build(
    recipe: str | Path,
    workspace: str | Path = "yard",
    *,
    jobs: int = 2,
    until: str = "release",
    collect: dict[str, Any] | None = None,
    shards: int = 1,
    scale: float | None = None,
) -> BuildResult:
    """Build a release: `build` through Prefect when an API is configured, directly otherwise.

    Args: see `build`.

    Returns:
        `release` (folder), `stages` and, by key, all that `routeyard build --json` prints.

    Raises:
        RecipeError: the recipe does not fit.
        GateFailed: a gate stops the release. BudgetReached, ProviderError: answers are missing.
    """
    done = start(
        _BUILD,
        recipe=str(recipe),
        workspace=str(workspace),
        jobs=jobs,
        until=until,
        collect=collect,
        shards=shards,
        scale=scale,
    )
    return BuildResult(done)


def _summary(done: dict[str, StageResult]) -> dict[str, Any]:
    return {
        "stages": {
            name: {"fingerprint": item.fingerprint, "reused": item.reused, "figures": item.figures}
            for name, item in done.items()
        }
    }


def _remember(
    root: Path, recipe: Recipe, recipe_path: str, done: Mapping[str, StageResult], card: str = ""
) -> None:
    """What the last build of this benchmark used; `routeyard status` and `relabel` read it.

    Stages that this build did not reach stay as they were recorded, unless one before them
    now gives something else: they are made of what is no longer there, and are only among those
    that were once reached.
    """
    path = root / "runs" / f"{recipe.name}.json"
    stages = {name: item.fingerprint for name, item in done.items()}
    folders = {name: str(Path(item.folder).relative_to(root)) for name, item in done.items()}
    before = _recorded(path)
    reached = [*before["reached"], *(name for name in stages if name not in before["reached"])]
    if all(before["stages"].get(name, now) == now for name, now in stages.items()):
        stages = {**before["stages"], **stages}
        folders = {**before["folders"], **folders}
    record = {"benchmark": recipe.name, "recipe": recipe_path, "version": recipe.version}
    record["card"] = card or before["card"]
    write_json(path, {**record, "stages": stages, "folders": folders, "reached": reached})


def _recorded(path: Path) -> dict[str, Any]:
    """Stages, their folders and those once reached; empty where no record can be read."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        stages, folders = (dict(data[key]) for key in ("stages", "folders"))
        reached = list(data["reached"])
        return {"stages": stages, "folders": folders, "reached": reached, "card": data.get("card")}
    except (OSError, ValueError, KeyError, TypeError):
        return {"stages": {}, "folders": {}, "reached": [], "card": None}


# What is fresh, what is stale and why: fingerprints of the stages against what is stored.

#: Earlier outputs of a stage that are compared, newest first.
_COMPARED = 500
#: Modules that are named where code changed.
_NAMED = 5
_WAITS = "an earlier stage is stale"


class _NotStored(Exception):
    """No output of a stage is stored; says which, and why."""

    def __init__(self, stage: Stage, why: str) -> None:
        self.stage, self.why = stage, why


def status(recipe: str, workspace: str) -> list[dict[str, str]]:
    """One row per stage of the recipe: stage, state (`fresh`, `stale`, `waiting`) and why.

    Stages after the first stale one wait for it: whether they change depends on
    what it gives. Nothing is made, and no model is asked.
    """
    checked, base = load(recipe)
    root = Path(workspace).absolute()
    root.mkdir(parents=True, exist_ok=True)
    context = BuildContext(checked.name, root, base)
    last = last_run(root, recipe)
    reached = last.get("reached", last.get("stages", {}))

    def look(stage: Stage, parts: Sequence[Mapping[str, Any]], processes: int) -> list[StageResult]:
        return [_stored(stage, context, item, reached) for item in parts]

    fresh: dict[str, str] = {}
    stale: _NotStored | None = None
    with fixtures(checked, root, serve=False):
        try:
            for stage, results in walk(checked, context, look):
                if not stage.part_of:
                    fresh[stage.name] = results[0].fingerprint
        except _NotStored as found:
            stale = found
    if stale is None:
        rows = [stage_row(name, "fresh") for name in fresh]
        return [*rows, _release(root, checked, fresh, last.get("card"))]
    name = stale.stage.part_of or stale.stage.name
    order = list(dict.fromkeys(item.name for item in STAGES if not item.part_of))
    before, after = order[: order.index(name)], order[order.index(name) + 1 :]
    return [
        *(stage_row(item, "fresh") for item in before),
        stage_row(name, "stale", stale.why),
        *(stage_row(item, "waiting", _WAITS) for item in [*after, "release"]),
    ]


def stage_row(stage: str, state: str, why: str = "") -> dict[str, str]:
    """What `status` says of a stage."""
    return {"stage": stage, "state": state, "why": why}


def _stored(
    stage: Stage, context: BuildContext, arguments: Mapping[str, Any], reached: Sequence[str]
) -> StageResult:
    """A stage's stored output, without reading all of it; raises _NotStored."""
    work = stage.function(context, **arguments)
    if isinstance(work, PendingAnswers):
        raise _NotStored(stage, f"{work.count:,} answers are missing")
    made_of = work.made_of(stage.name)
    if (result := find_stage(context.root, made_of, thoroughly=False)) is not None:
        return result
    ran = (stage.part_of or stage.name) in reached
    raise _NotStored(stage, why_stale(made_of, context.root, ran=ran))


def _release(
    root: Path, recipe: Recipe, now: Mapping[str, str], card: str | None
) -> dict[str, str]:
    """Whether the recipe's version is released, from the stages as they are now."""
    path = root / "releases" / recipe.name / recipe.version / "manifest.json"
    if not path.is_file():
        return stage_row("release", "stale", f"{recipe.version} is not released")
    then = json.loads(path.read_text(encoding="utf-8"))["stages"]
    if then == now:
        if card not in (None, reached_code(CARD)):
            return stage_row("release", "stale", "the card's code or its templates changed")
        return stage_row("release", "fresh")
    changed = ", ".join(sorted(k for k in {*now, *then} if now.get(k) != then.get(k)))
    return stage_row("release", "stale", f"{recipe.version} was released from another {changed}")


def last_run(workspace: Path, recipe: str) -> dict[str, Any]:
    """The record of the last build of a recipe; empty when it was never built."""
    return last_builds(workspace).get(load(recipe)[0].name, {})


def why_stale(made_of: Mapping[str, Any], workspace: Path, *, ran: bool = True) -> str:
    """What differs from the stage's closest earlier output.

    Args:
        made_of: See `StageWork.made_of`.
        ran: whether a build of this recipe ever reached the stage; outputs of other
            recipes say nothing of it.
    """
    folder = workspace / "stages" / str(made_of["stage"])
    results = sorted(folder.glob("*/stage.json"), key=lambda p: p.stat().st_mtime, reverse=True)
    if not ran and results:
        return "never run for this recipe"
    records = [intact(path.parent, thoroughly=False) for path in results[:_COMPARED]]
    reasons: list[list[str]] = [_differs(record, made_of) for record in records if record]
    if not reasons:
        return "its output was damaged" if results else "never run"
    # Shards of one benchmark share a folder, with other benchmarks too: the closest is ours.
    closest: list[str] = min(reasons, key=lambda item: (len(item) - _of_code(item), len(item)))
    if (many := _of_code(closest)) > _NAMED:
        closest = [*closest[: len(closest) - many + _NAMED], f"and {many - _NAMED} more modules"]
    return "; ".join(closest) or "its output was removed or damaged"


def _of_code(reasons: Sequence[str]) -> int:
    """How many of them are modules; those come last."""
    return sum(reason.startswith("code ") for reason in reasons)


def _differs(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    reasons: list[str] = []
    for part, word in (("parameters", "parameter"), ("inputs", "input"), ("code", "code")):
        old, new = before[part], now[part]
        if isinstance(old, str):
            return [*reasons, "its code changed"]
        changed = sorted(k for k in {*old, *new} if old.get(k) != new.get(k))
        reasons += [f"{word} {key!r} changed" for key in changed]
    return reasons
