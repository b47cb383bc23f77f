"""What is wrong with recorded steps: counts that cannot be, calls out of order, calls twice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from routeyard.schemas.stored import statements

#: Check (its SQL is in `audit.sql`) → what a row that it finds is.
CHECKS = {
    "classes": "steps with more cached tokens than prompt tokens",
    "reasoning": "steps with more reasoning tokens than completion tokens",
    "unwritten": "steps that read more tokens from the cache than any earlier prompt of their arm",
    "backwards": "steps that were sent before the step they follow",
    "outcomes": "trajectories with more than one outcome",
    "repeated": "calls that repeat another one in time, arm and every count",
}
SHOWN = 5


@dataclass(frozen=True, slots=True)
class StepFinding:
    """What one check found: how many, and the first of them by key."""

    check: str
    says: str
    count: int
    rows: tuple[tuple[str, str, int, int], ...]

    def __str__(self) -> str:
        first = ", ".join(f"{q} trial {s} step {k}" for q, _, s, k in self.rows[:3])
        return f"{self.check}: {self.count:,} {self.says} ({first}{', …' * (self.count > 3)})"


def audit_steps(steps: pa.Table) -> list[StepFinding]:
    """Findings over the table `steps`, in the order of `CHECKS`; counts that are null find nothing.

    Counts of a trajectory are judged step by step: what a whole trajectory used is no property of
    its last text.
    """
    import duckdb

    found = []
    texts = statements(Path(__file__).with_name("audit.sql"))
    with duckdb.connect() as connection:
        connection.register("steps", steps)
        for check, says in CHECKS.items():
            sql = texts[check]
            rows = connection.execute(
                f"SELECT *, count(*) OVER () FROM ({sql}) ORDER BY ALL LIMIT {SHOWN}"
            ).fetchall()
            if rows:
                shown = tuple((q, m, s, k) for q, m, s, k, _ in rows)
                found.append(StepFinding(check, says, rows[0][-1], shown))
    return found
