"""What the site shows of one release."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from routeyard.datacards.site.evaluation_tables import EvaluationTables
from routeyard.schemas.manifest import Manifest

#: Answers one SQL statement over the release's tables.
Ask = Callable[[str], pa.Table]


@dataclass(frozen=True)
class SiteRelease:
    """One release, as the pages need it.

    Attributes:
        health: Tables of the health report by name; empty when they were not made.
        saved: (name, what it asks, SQL) of the saved queries.
        beside: (title, Markdown) of zoo tables and studies of this release.
        changes: What changed against the version before, as Markdown lines.
        yanked: Why the version is not to be used, or None.
        texts: Whether pages show questions and answers; False leaves figures and charts.
    """

    manifest: Manifest
    ask: Ask
    health: Mapping[str, pa.Table] = field(default_factory=dict)
    evaluations: Sequence[EvaluationTables] = ()
    saved: Sequence[tuple[str, str, str]] = ()
    beside: Sequence[tuple[str, str]] = ()
    changes: Sequence[str] = ()
    yanked: str | None = None
    texts: bool = True

    @property
    def folder(self) -> str:
        """Folder of its pages, relative to the site: safe whatever the manifest says."""
        return f"{slug(self.manifest.name)}/{slug(self.manifest.version)}"

    @property
    def title(self) -> str:
        words = self.manifest.recipe.get("release") or {}
        return str(words.get("title") or self.manifest.name)

    @property
    def description(self) -> str:
        words = self.manifest.recipe.get("release") or {}
        return str(words.get("description") or "")

    @property
    def certificate(self) -> Mapping[str, Any] | None:
        found = (self.manifest.figures.get("certify") or {}).get("certificate")
        return found if isinstance(found, Mapping) else None

    def rows(self, sql: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask(sql).to_pylist()
        return found


def slug(text: str) -> str:
    """A file name made of text from outside."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-") or "release"
