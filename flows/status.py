"""What is fresh, what is stale and why: a build that makes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flows.build import build
from flows.recipe import load
from flows.workspace.seal import intact
from flows.workspace.stage_folders import PROBING, Stale
from pipelines.errors import BadInput

#: Earlier outputs of a stage that are compared, newest first.
_LOOKED_AT = 500


def status(recipe: str, workspace: str) -> list[dict[str, str]]:
    """One row per stage of the recipe: stage, state (`fresh`, `stale`, `waiting`) and why.

    Stages after the first stale one wait for it: whether they change depends on
    what it gives.
    """
    token = PROBING.set(True)
    try:
        summary = build.fn(recipe=recipe, workspace=workspace, until="certify")
        stages: Mapping[str, Any] = summary["stages"]
        stopped: Stale | None = None
    except Stale as stale:
        stages, stopped = {}, stale
    finally:
        PROBING.reset(token)
    rows = []
    order = ["ingest", "pool", "collect", "label", "embed", "curate", "audit", "certify"]
    reached = False
    for name in order:
        if stopped is None:
            if name in stages:
                rows.append({"stage": name, "state": "fresh", "why": ""})
        elif name == stopped.stage or (name == "label" and stopped.stage == "verdicts"):
            reached = True
            last = last_run(Path(workspace), recipe)
            ran = name in last.get("reached", last.get("stages", {}))
            why = _why(stopped, Path(workspace), ran=ran)
            rows.append({"stage": name, "state": "stale", "why": why})
        elif reached:
            rows.append({"stage": name, "state": "waiting", "why": "an earlier stage is stale"})
        else:
            rows.append({"stage": name, "state": "fresh", "why": ""})
    return [*rows, _release(Path(workspace), recipe, stages, stopped)]


def _release(
    workspace: Path, recipe: str, stages: Mapping[str, Any], stopped: Stale | None
) -> dict[str, str]:
    """Whether the recipe's version is released, from the stages as they are now."""
    checked, _ = load(recipe)
    folder = workspace / "releases" / checked.name / checked.version
    if stopped is not None:
        return {"stage": "release", "state": "waiting", "why": "an earlier stage is stale"}
    if not (folder / "manifest.json").is_file():
        return {"stage": "release", "state": "stale", "why": f"{checked.version} is not released"}
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    now = {name: one["fingerprint"] for name, one in stages.items()}
    if manifest["stages"] == now:
        return {"stage": "release", "state": "fresh", "why": ""}
    changed = sorted(
        k for k in {*now, *manifest["stages"]} if now.get(k) != manifest["stages"].get(k)
    )
    why = f"{checked.version} was released from another {', '.join(changed)}"
    return {"stage": "release", "state": "stale", "why": why}


def last_run(workspace: Path, recipe: str) -> dict[str, Any]:
    """The record of the last build of a recipe; empty when it was never built."""
    path = workspace / "runs" / f"{load(recipe)[0].name}.json"
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(
            f"the record of the last build is damaged: {error}",
            where=str(path),
            next_step="remove the file; nothing but `status` needs it",
        ) from error
    return dict(found)


def _why(stale: Stale, workspace: Path, *, ran: bool = True) -> str:
    """What differs from the stage's closest earlier output.

    Args:
        ran: whether a build of this recipe ever reached the stage; outputs of other
            recipes say nothing of it.
    """
    if "missing" in stale.made_of:
        return f"{stale.made_of['missing']:,} answers are missing"
    folder = workspace / "stages" / stale.stage
    found = sorted(folder.glob("*/stage.json"), key=lambda p: p.stat().st_mtime, reverse=True)
    records = [record for p in found[:_LOOKED_AT] if (record := intact(p.parent, thoroughly=False))]
    reasons: list[list[str]] = [_differs(record, stale.made_of) for record in records]
    if not ran and found:
        return "never run for this recipe"
    if not reasons:
        return "its output was damaged" if found else "never run"
    # Shards of one benchmark share a folder, with other benchmarks too: the closest is ours.
    closest: list[str] = min(reasons, key=len)
    return "; ".join(closest) or "its output was removed or damaged"


def _differs(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    reasons: list[str] = []
    for part, word in (("parameters", "parameter"), ("inputs", "input"), ("code", "code")):
        old, new = before[part], now[part]
        if isinstance(old, str):
            return [*reasons, "its code changed"]
        changed = sorted(k for k in {*old, *new} if old.get(k) != new.get(k))
        reasons += [f"{word} {key!r} changed" for key in changed]
    return reasons
