"""Certificate, gates and the release itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prefect import task

from flows.tasks.curate import curated_tables
from flows.workspace.stage_folders import StageResult, run_stage
from flows.workspace.tables import read
from pipelines.errors import GateFailed
from pipelines.io.staging import write_json
from schemas.recipe import Recipe

#: Computed for curation; a release holds them only on request (`release.include_embeddings`).
_ADD_ONS = frozenset({"embeddings"})


@task(name="metering audit", persist_result=True)
def audit_task(
    recipe: Recipe, root: str, curated: StageResult, collected: StageResult
) -> StageResult:
    """Metering audit over the responses that are to be released, and what the recipe waives."""
    import pyarrow.compute as pc

    from pipelines.metering.audit import apply_waivers, audit, known_of
    from pipelines.metering.steps import as_answers

    known = known_of(recipe.pool)
    drift = _canaries(recipe, Path(root))

    def make(folder: Path) -> Mapping[str, Any]:
        tables = curated_tables(curated)
        # Answers of injected models were stated by the recipe; nobody metered them.
        real = tables["models"].filter(pc.equal(tables["models"].column("kind"), "real"))
        metered = pc.is_in(tables["responses"].column("model_id"), real.column("model_id"))
        answers = tables["responses"].filter(metered)
        if recipe.collect.agent is not None:
            # What was metered are calls, not trajectories.
            answers = as_answers(read(collected, "steps"))
        found = audit(
            answers,
            tables["models"],
            recipe.collect.metering,
            queries=tables["queries"],
            canaries=drift,
            **known,
        )
        standing, waived = apply_waivers(found, recipe.release.waivers)
        findings = [asdict(finding) for finding in found]
        write_json(folder / "findings.json", findings)
        return {
            "findings": findings,
            "standing": [f"{one.model_id}: {one.count:,} {one.says}" for one in standing],
            "waived": [f"{one.model_id}: {one.count:,} {one.says}" for one, _ in waived],
        }

    return run_stage(
        Path(root),
        "audit",
        parameters={
            "metering": recipe.collect.metering.model_dump(mode="json"),
            "waivers": [waiver.model_dump() for waiver in recipe.release.waivers],
            "known": known,
            "canaries": [] if drift is None else drift.to_pylist(),
        },
        inputs={"curated": curated.fingerprint}
        | ({} if recipe.collect.agent is None else {"steps": collected.fingerprint}),
        make=make,
        benchmark=recipe.name,
    )


def _canaries(recipe: Recipe, root: Path) -> Any:
    """Canary answers of the workspace's last run; null where the recipe asks for none."""
    from flows.workspace.shares import open_ledger
    from pipelines.calls.canary import canary_answers

    if not recipe.collect.canary.prompts or recipe.collect.provider == "recorded":
        return None
    with open_ledger(root) as ledger:
        return canary_answers(ledger)


def check_metering(recipe: Recipe, audited: StageResult) -> None:
    """Stop at findings that the recipe does not waive.

    Raises:
        GateFailed: names the first findings and how to waive them.
    """
    standing: list[str] = audited.figures["standing"]
    if not standing:
        return
    more = f"; and {len(standing) - 5} more" if len(standing) > 5 else ""
    raise GateFailed(
        f"the metering audit stops this release: {'; '.join(standing[:5])}{more}",
        where=f"benchmark {recipe.name} {recipe.version}; {audited.folder}/findings.json",
        next_step="`routeyard audit metering --recipe FILE` names the answers; mend the cause, or "
        "waive it by name in the recipe: release.waivers: [{gate: metering, reason: …}]; the card "
        "will print the reason",
    )


@task(name="certify", persist_result=True)
def certify_task(
    recipe: Recipe, root: str, curated: StageResult, embedded: StageResult | None
) -> StageResult:
    """Routability certificate over the staged tables."""
    from pipelines.evaluate.certificate import certify
    from pipelines.evaluate.certificate.crossfit import REFERENCE
    from pipelines.matrix.reading import from_tables
    from pipelines.routers import ROUTERS

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
        make=make,
        uses=ROUTERS.modules(REFERENCE),
        benchmark=recipe.name,
    )


@task(name="release", persist_result=True)
def release_task(recipe: Recipe, root: str, stages: Mapping[str, StageResult]) -> dict[str, Any]:
    """Tables, database, card and manifest, written whole."""
    from datacards.card import render
    from datacards.files import render as render_files
    from pipelines.release.build import write_release

    tables = {k: v for k, v in curated_tables(stages["curate"]).items() if k not in _ADD_ONS}
    if recipe.release.include_embeddings and "embed" in stages:
        tables["embeddings"] = read(stages["embed"], "embeddings")
    if recipe.collect.agent is not None and "collect" in stages:
        from flows.tasks.agent import kept_steps

        tables["steps"] = kept_steps(stages["collect"], tables)
    if recipe.release.zoo is not None:
        check_zoo(recipe.release.zoo, tables)
    ingested = stages["ingest"].figures
    released = write_release(
        tables,
        recipe=recipe.model_dump(mode="json"),
        root=Path(root) / "releases",
        render_card=render,
        render_files=render_files,
        figures={name: _short(done.figures) for name, done in stages.items()},
        fingerprints={name: done.fingerprint for name, done in stages.items()},
        sources=ingested["sources"],
        waivers=[waiver.model_dump() for waiver in recipe.release.waivers],
    )
    return {
        "path": str(released.path),
        "status": released.status,
        "fingerprint": released.fingerprint,
    }


def check_zoo(text: str, tables: Mapping[str, Any]) -> None:
    """Stop where the zoo's results are not about these labels, costs and splits.

    Raises:
        GateFailed: says so, and how to make them anew.
    """
    import json

    from pipelines.matrix.reading import core_of
    from pipelines.zoo.cell_inputs import hash_of

    results = json.loads(text)
    core = core_of({k: v for k, v in tables.items() if k != "embeddings"})
    if results["scheme"] in core.splits and hash_of(core, results["scheme"]) == results["data"]:
        return
    raise GateFailed(
        "the zoo's results were measured on other labels, costs or splits",
        where="release.zoo",
        next_step="build without `release.zoo`, run `routeyard zoo run` on that release, and name "
        "its zoo.json",
    )


def _short(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Figures without the rows of findings, which stay in the workspace: a manifest is read."""
    out = dict(figures)
    if isinstance(out.get("findings"), list):
        out["findings"] = [{k: v for k, v in f.items() if k != "rows"} for f in out["findings"]]
    return out
