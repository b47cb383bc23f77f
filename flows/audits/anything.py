"""The audit of anything: a file or folder of results, a release, a submission; one page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from routeyard.flows.audits.page import AuditPage
from routeyard.flows.workspace.memory_needs import check_audit, check_audit_release
from routeyard.pipelines.audit.finding import AuditFinding
from routeyard.pipelines.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

    from routeyard.pipelines.audit.run import RecordingAudit


def audit_path(
    path: str | Path, *, release: str | Path | None = None, beside: str | Path | None = None
) -> AuditPage:
    """Audit whatever is at a path.

    Args:
        release: the release that a submission was made for.
        beside: an earlier submission of the same team.

    Raises:
        BadInput, SourceError: nothing is there, or it cannot be read.
    """
    path = Path(path)
    if not path.exists():
        raise BadInput("there is nothing to audit", where=str(path), next_step="name a file")
    if release is not None:
        from routeyard.flows.audits.submitted import audit_submitted

        return audit_submitted(path, Path(release), Path(beside) if beside else None)
    from routeyard.flows.audits.imported import imported_recording, is_import
    from routeyard.pipelines.audit.run import audit_recording

    if beside is not None:
        raise BadInput(
            "--beside compares two submissions, and names no release that they are for",
            where=str(beside),
            next_step="add --release yard/releases/<name>/<version>",
        )
    if (path / "manifest.json").is_file():
        return audit_release(path)
    if is_import(path):
        table = imported_recording(path)
        return _page(path.name, "the import", audit_recording(table), table)
    return audit_results(path)


def audit_results(path: Path) -> AuditPage:
    """The audit of a stranger's file or folder, read by its structure alone.

    Figures of many questions each hold no answer: nothing can be audited, which is a finding.
    """
    from routeyard.flows.audits.parts import reading_findings
    from routeyard.pipelines.audit.run import audit_recording
    from routeyard.pipelines.ingest.results import AggregatesOnly, read_results

    check_audit(path)
    try:
        read = read_results(path)
    except AggregatesOnly as error:
        odd = (_aggregates(error), *reading_findings(error.notes))
        return AuditPage(path.name, "figures of many questions each", "doubtful", odd)
    found = audit_recording(read.table)
    notes = tuple(str(note.says) for note in read.notes)
    more = reading_findings(read.notes)
    return _page(path.name, f"{read.layout} results", found, read.table, more, notes=notes)


def _aggregates(error: Exception) -> AuditFinding:
    says = str(getattr(error, "what", error))
    return AuditFinding(
        "aggregates_only", "file", says, 0, (), "no leaderboard of questions can be made", "doubt",
        key="sources",
    )  # fmt: skip


def audit_release(path: Path) -> AuditPage:
    """The audit of a release, its labels and its metering included."""
    from routeyard.flows.audits.parts import label_findings, metering_findings
    from routeyard.flows.audits.released_answers import free_arms, recording_of
    from routeyard.flows.evaluation.released import read_release
    from routeyard.pipelines.audit.run import audit_recording

    tables = read_release(path)
    if (labels := tables.stored("labels")) is not None:
        check_audit_release(labels.num_rows)
    table = recording_of(tables)
    found = audit_recording(table, free=free_arms(tables["models"]))
    more = (*label_findings(tables, path), *metering_findings(tables, path))
    title = f"{path.resolve().parent.name} {path.resolve().name}"
    return _page(title, "the release", found, table, more)


def _page(
    title: str,
    of: str,
    found: RecordingAudit,
    table: pa.Table,
    more: Sequence[AuditFinding] = (),
    notes: tuple[str, ...] = (),
) -> AuditPage:
    from routeyard.pipelines.audit.leaderboard import leaderboard
    from routeyard.pipelines.audit.run import verdict_of

    findings = (*found.findings, *more)
    return AuditPage(
        title, of, verdict_of(findings), findings, found.looked_at, found.not_checked, notes,
        tuple(leaderboard(table)),
    )  # fmt: skip


def write_page(found: AuditPage, out: Path) -> Path:
    """`audit.html`, `audit.md` and `audit.json` in a folder; returns the page."""
    from routeyard.datacards.reports.audit import audit_report

    html, markdown = audit_report(found.data)
    out.mkdir(parents=True, exist_ok=True)
    (out / "audit.html").write_text(html, encoding="utf-8")
    (out / "audit.md").write_text(markdown, encoding="utf-8")
    text = json.dumps(found.data, ensure_ascii=False, indent=1, default=str)
    (out / "audit.json").write_text(text + "\n", encoding="utf-8")
    return out / "audit.html"
