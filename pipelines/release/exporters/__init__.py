"""Exporters: a release in the layouts that other projects train their routers from.

To add one: a file here with `EXPORTER = Exporter(...)`, listed below.
"""

from __future__ import annotations

from routeyard.pipelines.common.registry import Registry

#: Format → its exporter.
EXPORTERS = Registry(
    kind="export format",
    group="routeyard.exporters",
    builtin={
        "embedllm": "routeyard.pipelines.release.exporters.embedllm:EXPORTER",
        "llmrouterbench": "routeyard.pipelines.release.exporters.llmrouterbench:EXPORTER",
        "participants": "routeyard.pipelines.release.exporters.participants:EXPORTER",
        "routerarena": "routeyard.pipelines.release.exporters.routerarena:EXPORTER",
        "routellm": "routeyard.pipelines.release.exporters.routellm:EXPORTER",
        "sprout": "routeyard.pipelines.release.exporters.sprout:EXPORTER",
        "ulab": "routeyard.pipelines.release.exporters.ulab:EXPORTER",
    },
)
