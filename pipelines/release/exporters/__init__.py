"""Exporters: a release in the layouts that other projects train their routers from.

To add one: an `Exporter` in a file here, listed below.
"""

from __future__ import annotations

from routeyard.pipelines.common.registry import Registry

#: Format → its exporter.
EXPORTERS = Registry(
    kind="export format",
    group="routeyard.exporters",
    builtin={
        "embedllm": f"{__name__}.router_tables:EMBEDLLM_EXPORTER",
        "llmrouterbench": f"{__name__}.router_tables:LLMROUTERBENCH_EXPORTER",
        "participants": f"{__name__}.router_tables:PARTICIPANTS_EXPORTER",
        "routerarena": f"{__name__}.router_tables:ROUTERARENA_EXPORTER",
        "routellm": f"{__name__}.router_tables:ROUTELLM_EXPORTER",
        "sprout": f"{__name__}.router_tables:SPROUT_EXPORTER",
        "ulab": f"{__name__}.router_tables:ULAB_EXPORTER",
    },
)
