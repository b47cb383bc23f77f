"""Exporters: a release in the layouts that other projects train their routers from.

To add one: a file here with `EXPORTER = Exporter(...)`, listed below.
"""

from __future__ import annotations

from pipelines.registry import Registry

#: Format → its exporter.
EXPORTERS = Registry(
    kind="export format",
    group="routeyard.exporters",
    builtin={
        "embedllm": "pipelines.release.exporters.embedllm:EXPORTER",
        "llmrouterbench": "pipelines.release.exporters.llmrouterbench:EXPORTER",
        "routellm": "pipelines.release.exporters.routellm:EXPORTER",
        "ulab": "pipelines.release.exporters.ulab:EXPORTER",
    },
)
