"""The metering audit of a ledger, of a recording, or as the last build left it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routeyard.pipelines.metering.findings import MeteringFinding
    from routeyard.schemas.recipe import Recipe, Waiver


@dataclass(frozen=True, slots=True)
class MeteringAudit:
    """What an audit found, and over what.

    Attributes:
        of: What was looked at.
        places: (query_id, model_id, sample) → where a person finds the answer.
    """

    unresolved: tuple[MeteringFinding, ...]
    waived: tuple[tuple[MeteringFinding, Waiver], ...]
    of: str
    places: Mapping[tuple[str, str, int], str]

    def rows(self, finding: MeteringFinding, most: int) -> list[str]:
        """The first rows of a finding, as a person finds them."""
        keys = [(query, finding.model_id, sample) for query, sample in finding.rows[:most]]
        return [self.places.get(key, f"{key[0]}/{key[2]}") for key in keys]


def audit_workspace(workspace: Path, recipe: str | None) -> MeteringAudit:
    """Audit a recipe's recording, or else the ledger; without one, what the last build found.

    Raises:
        BadInput: there is neither ledger nor recording nor a build.
    """
    from routeyard.flows.recipe import load
    from routeyard.flows.workspace.ledgers import ledger_exists

    checked, base = load(recipe) if recipe else (None, workspace)
    if checked is not None and checked.collect.provider == "recorded" and checked.collect.recorded:
        return audit_recording(checked, base)
    if checked is None and not ledger_exists(workspace):
        last = _last_build(workspace)
        if last is not None:
            return last
    unresolved, waived = audit_ledger(workspace, checked)
    return MeteringAudit(unresolved, waived, "the ledger", {})


def audit_recording(recipe: Recipe, base: Path) -> MeteringAudit:
    """The audit over a recipe's recorded answers, which are read as a build reads them."""
    from routeyard.pipelines.collect.recorded import import_recorded
    from routeyard.pipelines.ingest import ingest
    from routeyard.pipelines.metering.audit import audited
    from routeyard.pipelines.pool import models_table

    queries, models = ingest(recipe.sources, base=base).queries, models_table(recipe.pool)
    imported = import_recorded(queries, models, recipe.collect.recorded, base=base)
    unresolved, waived = audited(recipe, imported.responses, queries, models)
    return MeteringAudit(unresolved, waived, "the recording", imported.places)


def _last_build(workspace: Path) -> MeteringAudit | None:
    """What the audit of the newest build found; None where nothing was audited yet."""
    import duckdb

    from routeyard.flows.workspace.seal import intact
    from routeyard.pipelines.metering.audit import apply_waivers
    from routeyard.pipelines.metering.findings import MeteringFinding
    from routeyard.schemas.recipe import Waiver

    whole = [at for at in workspace.glob("stages/audit/[!.]*") if intact(at, thoroughly=True)]
    if not whole:
        return None
    folder = max(whole, key=lambda at: (at / "stage.json").stat().st_mtime)
    said = json.loads((folder / "stage.json").read_text(encoding="utf-8"))
    findings = [
        MeteringFinding(**{**one, "rows": tuple((str(q), int(n)) for q, n in one["rows"])})
        for one in json.loads((folder / "findings.json").read_text(encoding="utf-8"))
    ]
    waivers = [Waiver.model_validate(one) for one in said["parameters"]["waivers"]]
    pattern = str(workspace / "stages" / "ingest" / "[!.]*" / "queries.parquet")
    ids = {}
    if findings and any(workspace.glob("stages/ingest/[!.]*/queries.parquet")):
        with duckdb.connect() as connection:
            named = "SELECT DISTINCT query_id, source, source_id FROM read_parquet(?)"
            ids = {q: (s, i) for q, s, i in connection.execute(named, [pattern]).fetchall()}
    places = {
        (query, one.model_id, sample): f"{ids[query][0]} id {ids[query][1]!r}"
        for one in findings
        for query, sample in one.rows
        if query in ids
    }
    unresolved, waived = apply_waivers(findings, waivers)
    return MeteringAudit(unresolved, waived, f"the newest build ({folder})", places)


def audit_ledger(
    workspace: Path, checked: Recipe | None
) -> tuple[tuple[MeteringFinding, ...], tuple[tuple[MeteringFinding, Waiver], ...]]:
    """(unresolved findings, findings the recipe waives) over all answers of a ledger."""
    from routeyard.flows.workspace.ledgers import existing_ledger, prompts
    from routeyard.pipelines.calls.canary import canary_answers
    from routeyard.pipelines.ledger.answers_table import answers_table, asked_models
    from routeyard.pipelines.metering.audit import apply_waivers, audit, known_of
    from routeyard.pipelines.pool import models_table
    from routeyard.schemas.recipe import Pool
    from routeyard.schemas.recipe.collect import Metering

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
