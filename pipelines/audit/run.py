"""The audit: every check that a recording has the columns for, the gravest effect first.

audit = audit_recording(table)
audit.verdict, audit.findings
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from routeyard.pipelines.audit.answers import Answers
from routeyard.pipelines.audit.checks import CHECKS
from routeyard.pipelines.audit.effect import effect
from routeyard.pipelines.audit.finding import SHOWN, AuditCheck, AuditFinding, Found
from routeyard.pipelines.audit.together import by_severity, together

Verdict = Literal["clean", "doubtful", "defective"]


@dataclass(frozen=True)
class RecordingAudit:
    """What an audit found.

    Attributes:
        looked_at: numbers of what was read: answers, arms, questions, suites.
        not_checked: kind → the column that the source lacks for it.
    """

    findings: tuple[AuditFinding, ...]
    looked_at: dict[str, int]
    not_checked: dict[str, str]

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.findings)


def verdict_of(findings: Iterable[AuditFinding]) -> Verdict:
    """`defective` with a grave finding, `doubtful` with a doubt, else `clean`."""
    found = {one.severity for one in findings}
    return "defective" if "grave" in found else "doubtful" if "doubt" in found else "clean"


def audit_recording(table: pa.Table, *, free: Iterable[str] = ()) -> RecordingAudit:
    """Findings over a recording, those that change the ranking most first.

    Args:
        table: `RECORDING`.
        free: arms whose price is stated as 0, so that a cost of 0 is one.
    """
    answers = Answers.of(table, free)
    found: list[AuditFinding] = []
    lacking: dict[str, str] = {}
    for check in CHECKS if len(answers) else ():
        missing = next((name for name in check.needs if not answers.has(name)), None)
        if missing is not None:
            lacking[check.kind] = missing
            continue
        found += [_finding(answers, check, *some) for some in by_severity(check.find(answers))]
    looked_at = {
        "answers": len(answers),
        "arms": len(answers.arms),
        "questions": answers.n_questions,
        "suites": len([name for name in answers.suites if name]),
        "scored": int(np.sum(~np.isnan(answers.score))),
    }
    order = {"grave": 0, "doubt": 1, "note": 2}
    # What a benchmark may choose, and what is no defect, comes last.
    found.sort(key=lambda one: (one.severity == "note", -one.swaps, order[one.severity],
                                -one.moved, -one.count, one.kind))  # fmt: skip
    return RecordingAudit(tuple(found), looked_at, lacking)


def _finding(answers: Answers, check: AuditCheck, *some: Found) -> AuditFinding:
    """What one check found, as one finding: several of one severity are one cause."""
    found = some[0] if len(some) == 1 else together(some)
    change = effect(answers, found, check.mends)
    parts = [{"about": one.about, "says": one.says, "count": len(one.rows)} for one in some]
    return AuditFinding(
        kind=check.kind,
        about=found.about,
        says=found.says,
        count=len(found.rows),
        rows=tuple(answers.place(row) for row in _shown(some)),
        effect=change.says,
        severity=found.severity or check.severity,
        swaps=change.swaps,
        moved=change.moved,
        key=check.key,
        parts=tuple(parts) if len(some) > 1 else (),
    )


def _shown(some: tuple[Found, ...]) -> list[int]:
    """Rows that are named: the first of each part in turn."""
    each = max(1, SHOWN // len(some))
    return [int(row) for one in some for row in one.rows[:each]][:SHOWN]
