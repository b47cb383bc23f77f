"""What an audit of anything tells: a verdict, findings, and what they are about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from routeyard.pipelines.audit.finding import AuditFinding
from routeyard.schemas.notebook import html_card


@dataclass(frozen=True, repr=False)
class AuditPage:
    """What was found, and over what.

    Attributes:
        of: what was looked at.
        notes: how a stranger's files were read.
        leaderboard: rows of accuracy with the bounds that missing answers leave.
    """

    title: str
    of: str
    verdict: str
    findings: tuple[AuditFinding, ...]
    looked_at: Mapping[str, int] = field(default_factory=dict)
    not_checked: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    leaderboard: tuple[dict[str, Any], ...] = ()

    @property
    def data(self) -> dict[str, Any]:
        """What `--json` prints."""
        said = asdict(self)
        return {"verdict": said.pop("verdict"), "findings": said.pop("findings"), **said}

    def __repr__(self) -> str:
        return f"audit of {self.title}: {self.verdict}, {len(self.findings)} findings"

    def _repr_html_(self) -> str:
        rows = [
            {"severity": one.severity, "kind": one.kind, "about": one.about, "finding": one.says,
             "when mended": one.effect, "mend with": one.key}
            for one in self.findings
        ]  # fmt: skip
        facts = {"verdict": self.verdict, "findings": len(rows), **self.looked_at}
        return html_card(f"audit of {self.title}", facts, rows)
