"""Importers: existing routing benchmarks and evaluations as they are published → a workspace.

To add one: an entry in `importers.yaml`, and a file here with its reader, listed below.
"""

from __future__ import annotations

from routeyard.pipelines.registry import Registry

#: Format → its importer.
IMPORTERS = Registry(
    kind="import format",
    group="routeyard.importers",
    builtin={
        "alpaca_eval": "routeyard.pipelines.ingest.importers.alpaca_eval:IMPORTER",
        "embedllm": "routeyard.pipelines.ingest.importers.embedllm:IMPORTER",
        "inspect": "routeyard.pipelines.ingest.importers.inspect_logs:IMPORTER",
        "llmrouterbench": "routeyard.pipelines.ingest.importers.llmrouterbench:IMPORTER",
        "lm_eval": "routeyard.pipelines.ingest.importers.lm_eval:IMPORTER",
        "mixinstruct": "routeyard.pipelines.ingest.importers.mixinstruct:IMPORTER",
        "mixinstruct_bartscore": "routeyard.pipelines.ingest.importers.mixinstruct:BARTSCORE",
        "mmlu_pro": "routeyard.pipelines.ingest.importers.mmlu_pro:IMPORTER",
        "routellm": "routeyard.pipelines.ingest.importers.routellm:IMPORTER",
        "routerarena": "routeyard.pipelines.ingest.importers.routerarena:IMPORTER",
        "routerbench": "routeyard.pipelines.ingest.importers.routerbench:IMPORTER",
        "routereval": "routeyard.pipelines.ingest.importers.routereval:IMPORTER",
        "sprout": "routeyard.pipelines.ingest.importers.sprout:IMPORTER",
        "ulab": "routeyard.pipelines.ingest.importers.ulab:IMPORTER",
        "zeroeval": "routeyard.pipelines.ingest.importers.zeroeval:IMPORTER",
    },
)
