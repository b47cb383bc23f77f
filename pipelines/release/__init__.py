"""Release: tables → a versioned folder that answers questions and can be checked."""

from __future__ import annotations

from pipelines.release.build import Released, write_release
from pipelines.release.checks.finding import Finding
from pipelines.release.opened import OpenRelease, open_release
from pipelines.release.verify import verify_release

__all__ = [
    "Finding",
    "OpenRelease",
    "Released",
    "open_release",
    "verify_release",
    "write_release",
]
