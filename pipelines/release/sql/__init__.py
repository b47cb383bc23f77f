"""SQL of a release: a file per purpose, its statements by name."""

from __future__ import annotations

from pathlib import Path

from routeyard.schemas.contracts import statements


def sql_of(purpose: str) -> dict[str, str]:
    """Name → SQL."""
    return statements(Path(__file__).with_name(f"{purpose}.sql"))
