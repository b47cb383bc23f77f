"""Release: tables → a versioned folder that answers questions and can be checked."""

from __future__ import annotations

from routeyard.pipelines.release.build import Released, write_release
from routeyard.pipelines.release.checks.verify import verify_release
from routeyard.pipelines.release.finding import Finding
from routeyard.pipelines.release.reader import OpenRelease, open_release

__all__ = [
    "Finding",
    "OpenRelease",
    "Released",
    "open_release",
    "verify_release",
    "write_release",
]
