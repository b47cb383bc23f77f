"""Certificate, gates and the release itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prefect import task

from flows.stages import curated_tables
from flows.tables import read
from flows.workspace import Done, run_stage, write_json
from pipelines.errors import GateFailed
from schemas.recipe import Recipe

#: Gates a recipe can waive by name (`release.waivers`).
GATES = ("metering",)
#: Tables that only help building; a release does not repeat them.
_NOT_RELEASED = frozenset({"embeddings"})


@task(name="metering audit", persist_result=True)
def audit_task(recipe: Recipe, root: str, curated: Done) -> Done:
    """Findings of the metering audit over the responses that are to be released."""
    from dataclasses import asdict

    from pipelines.calls.audit import audit

    def make(folder: Path) -> Mapping[str, Any]:
        tables = curated_tables(curated)
        found = audit(tables["responses"], tables["models"], thresholds=recipe.collect.metering)
        findings = [asdict(finding) for finding in found]
        write_json(folder / "findings.json", findings)
        return {"findings": findings}

    return run_stage(
        Path(root),
        "audit",
        parameters=recipe.collect.metering.model_dump(mode="json"),
        inputs={"curated": curated.fingerprint},
        rooms=("schemas", "pipelines.calls.audit"),
        make=make,
    )


def check_gate(gate: str, recipe: Recipe, problems: list[str]) -> None:
    """Stop unless there is nothing to stop for, or the recipe waives the gate by name.

    Raises:
        GateFailed: names the first problems and how to waive the gate.
    """
    if not problems or any(waiver.gate == gate for waiver in recipe.release.waivers):
        return
    shown = "; ".join(problems[:5]) + (f"; and {len(problems) - 5} more" if problems[5:] else "")
    raise GateFailed(
        f"the {gate} gate stops this release: {shown}",
        where=f"benchmark {recipe.name} {recipe.version}",
        next_step=f"mend the cause, or waive it by name: release.waivers: "
        f"[{{gate: {gate}, reason: …}}]; the card will print the reason",
    )


@task(name="certify", persist_result=True)
def certify_task(recipe: Recipe, root: str, curated: Done, embedded: Done | None) -> Done:
    """Routability certificate over the staged tables."""
    from pipelines.evaluate.certificate import certify
    from pipelines.evaluate.core import from_tables

    def make(folder: Path) -> Mapping[str, Any]:
        tables = curated_tables(curated)
        embeddings = None if embedded is None else read(embedded, "embeddings")
        core = from_tables(
            tables["queries"],
            tables["models"],
            tables["labels"],
            tables["responses"],
            embeddings,
            tables["splits"],
            tables.get("duplicates"),
            verdicts=tables["verdicts"],
        )
        certificate = certify(core).to_json()
        write_json(folder / "certificate.json", certificate)
        return {"verdict": certificate["verdict"], "certificate": certificate}

    inputs = {"curated": curated.fingerprint}
    if embedded is not None:
        inputs["embeddings"] = embedded.fingerprint
    return run_stage(
        Path(root),
        "certify",
        parameters={},
        inputs=inputs,
        rooms=("schemas", "pipelines.evaluate", "pipelines.routers"),
        make=make,
    )


@task(name="release", persist_result=True)
def release_task(recipe: Recipe, root: str, stages: Mapping[str, Done]) -> dict[str, Any]:
    """Tables, database, card and manifest, written whole."""
    from datacards.card import render
    from pipelines.release.build import write_release

    tables = {k: v for k, v in curated_tables(stages["curate"]).items() if k not in _NOT_RELEASED}
    if recipe.release.include_embeddings and "embed" in stages:
        tables["embeddings"] = read(stages["embed"], "embeddings")
    ingested = stages["ingest"].figures
    released = write_release(
        tables,
        recipe=recipe.model_dump(mode="json"),
        root=Path(root) / "releases",
        render_card=render,
        figures={name: done.figures for name, done in stages.items()},
        fingerprints={name: done.fingerprint for name, done in stages.items()},
        sources=ingested["sources"],
        waivers=[waiver.model_dump() for waiver in recipe.release.waivers],
    )
    return {
        "path": str(released.path),
        "status": released.status,
        "fingerprint": released.fingerprint,
    }
