"""Defects of what is to be released: findings of the audit, questions on two sides of a split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from routeyard.flows.workspace.tables import of_models
from routeyard.pipelines.audit.finding import AuditFinding
from routeyard.schemas.recipe import CurationRule, Split


def upstream_schemes(curate: Sequence[CurationRule]) -> set[str]:
    """Schemes that a source published: what leaks there is reported and stops nothing."""
    rules = (rule for rule in curate if rule.rule == "upstream_split")
    return {str(rule.parameters.get("scheme", "upstream")) for rule in rules}


def defects_of(
    tables: Mapping[str, Any], split: Split, curate: Sequence[CurationRule]
) -> list[AuditFinding]:
    """Findings of the audit over the tables of a release, and leaks of each of its schemes.

    Answers of injected models were stated by the recipe, and are not looked at.
    """
    import pyarrow.compute as pc

    from routeyard.flows.audits.released_answers import free_arms, recording_of
    from routeyard.pipelines.audit.run import audit_recording

    models = tables["models"]
    real = models.filter(pc.equal(models.column("kind"), "real"))
    own = {**tables, "splits": tables["splits"].slice(0, 0)}
    for name in ("labels", "responses"):
        own[name] = of_models(tables[name], real)
    found = audit_recording(recording_of(own), free=free_arms(models))
    return [*leaks_of(tables, split.keep_together, upstream_schemes(curate)), *found.findings]


def leaks_of(tables: Mapping[str, Any], together: Any, upstream: set[str]) -> list[AuditFinding]:
    """One finding for each scheme in which a test question is also in train or validation."""
    from routeyard.pipelines.curate.one_question import left_apart, one_question

    one = one_question(tables["queries"], tables.get("duplicates"), together)
    return [
        AuditFinding(
            kind="leak",
            about=f"split {scheme!r}" + (", as its source published it" * (scheme in upstream)),
            says=f"{leaked:,} of {total:,} test questions are also in train or validation, such "
            f"as {some[0]}",
            count=leaked,
            rows=tuple({"question": query} for query in some),
            effect="a router has seen the answers to these questions",
            severity="note" if scheme in upstream else "grave",
            key="sources[].fields.group, split.keep_together",
        )
        for scheme, leaked, total, some in left_apart(tables["splits"], one)
    ]
