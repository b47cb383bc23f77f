"""What is fresh, what is stale and why: fingerprints of the stages against what is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from routeyard.flows.recipe import load
from routeyard.flows.stages import STAGES, Stage, walk
from routeyard.flows.workspace import (
    CARD,
    BuildContext,
    PendingAnswers,
    StageResult,
    find_stage,
    fixtures,
    intact,
    last_builds,
    reached_code,
)
from routeyard.schemas.recipe import Recipe

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
