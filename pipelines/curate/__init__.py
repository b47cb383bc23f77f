"""Curation rules: pure functions that say what they kept, removed and why."""

from __future__ import annotations

from pipelines.registry import Registry

RULES = Registry(
    kind="curation rule",
    group="routeyard.rules",
    builtin={
        "preference": "pipelines.curate.preference:preference",
    },
)
