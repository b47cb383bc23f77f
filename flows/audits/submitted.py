"""The audit of a submission of choices, as a page like any other audit."""

from __future__ import annotations

from pathlib import Path

from routeyard.flows.audits.page import AuditPage
from routeyard.pipelines.audit.finding import AuditFinding, Severity
from routeyard.pipelines.audit.run import verdict_of

#: Level of a suspicion → severity of a finding.
_SEVERITY: dict[str, Severity] = {"fail": "grave", "warn": "doubt"}


def audit_submitted(path: Path, release: Path, beside: Path | None = None) -> AuditPage:
    """Findings on a table of choices for a release, and on its changes since an earlier one."""
    from routeyard.flows.evaluation.submission import audit_submission

    suspicions = audit_submission(path, release, beside=beside)
    findings = tuple(
        AuditFinding(
            kind=f"submission:{one.name.replace(' ', '_')}",
            about=path.name,
            says=one.says,
            count=0,
            rows=(),
            effect="the submission's score cannot be compared with others'",
            severity=_SEVERITY[one.level],
            key="–",
        )
        for one in suspicions
        if one.level in _SEVERITY
    )
    notes = tuple(f"{one.name}: {one.says}" for one in suspicions if one.level == "ok")
    title = f"{path.name} for {release.resolve().parent.name} {release.resolve().name}"
    return AuditPage(title, "the submission", verdict_of(findings), findings, notes=notes)
