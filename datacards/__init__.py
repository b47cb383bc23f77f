"""Cards, reports, charts and the site of a release, and how it is published."""

from __future__ import annotations

from pathlib import Path

from routeyard.schemas.contracts import statements


def sql_of(purpose: str) -> dict[str, str]:
    """Name → SQL of a file in `sql/`."""
    return statements(Path(__file__).parent / "sql" / f"{purpose}.sql")
