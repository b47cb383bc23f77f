"""Reference routers."""

from __future__ import annotations

from pipelines.registry import Registry

ROUTERS = Registry(
    kind="router",
    group="routeyard.routers",
    builtin={},
)
