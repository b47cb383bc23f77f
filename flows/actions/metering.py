"""The metering audit of a workspace's ledger."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.metering.findings import MeteringFinding
    from schemas.recipe import Pool, Recipe, Waiver


def audit_ledger(
    workspace: Path, recipe: str | None
) -> tuple[tuple[MeteringFinding, ...], tuple[tuple[MeteringFinding, Waiver], ...]]:
    """(findings that stand, findings the recipe waives) over all answers of a ledger."""
    from flows.recipe import load
    from flows.workspace.ledgers import existing_ledger, prompts
    from pipelines.calls.canary import canary_answers
    from pipelines.ledger.standing import answers_table, asked_models
    from pipelines.metering.audit import apply_waivers, audit
    from pipelines.pool import models_table
    from schemas.recipe import Pool
    from schemas.recipe.collect import Metering

    checked = load(recipe)[0] if recipe else None
    with existing_ledger(workspace) as ledger:
        pool = checked.pool if checked else Pool(models=asked_models(ledger))
        answers = answers_table(ledger)
        canaries = canary_answers(ledger)
    findings = audit(
        answers,
        models_table(pool),
        checked.collect.metering if checked else Metering(),
        queries=prompts(workspace),
        canaries=canaries,
        **known_of(pool),
    )
    return apply_waivers(findings, checked.release.waivers if checked else ())


def canaries(recipe: Recipe, root: Path) -> Any:
    """Canary answers of the workspace's last run; null where the recipe asks for none."""
    from flows.workspace.shares import open_ledger
    from pipelines.calls.canary import canary_answers

    if not recipe.collect.canary.prompts or recipe.collect.provider == "recorded":
        return None
    with open_ledger(root) as ledger:
        return canary_answers(ledger)


def known_of(pool: Pool) -> Mapping[str, Any]:
    """What the audit has to know of a pool beside its `models` table."""
    return {
        "names": {m.model_id: m.endpoint_model for m in pool.models if m.endpoint_model},
        "price_changed": {m.model_id: m.price_changed for m in pool.models if m.price_changed},
    }
