"""Importers: existing routing benchmarks and evaluations as they are published → a workspace.

To add one: a file here with `IMPORTER = Importer(...)`, listed below.
"""

from __future__ import annotations

from pipelines.registry import Registry

#: Format → its importer.
IMPORTERS = Registry(
    kind="import format",
    group="routeyard.importers",
    builtin={
        "alpaca_eval": "pipelines.ingest.importers.alpaca_eval:IMPORTER",
        "embedllm": "pipelines.ingest.importers.embedllm:IMPORTER",
        "inspect": "pipelines.ingest.importers.inspect_logs:IMPORTER",
        "llmrouterbench": "pipelines.ingest.importers.llmrouterbench:IMPORTER",
        "lm_eval": "pipelines.ingest.importers.lm_eval:IMPORTER",
        "mixinstruct": "pipelines.ingest.importers.mixinstruct:IMPORTER",
        "mixinstruct_bartscore": "pipelines.ingest.importers.mixinstruct:BARTSCORE",
        "mmlu_pro": "pipelines.ingest.importers.mmlu_pro:IMPORTER",
        "routellm": "pipelines.ingest.importers.routellm:IMPORTER",
        "routerarena": "pipelines.ingest.importers.routerarena:IMPORTER",
        "routerbench": "pipelines.ingest.importers.routerbench:IMPORTER",
        "routereval": "pipelines.ingest.importers.routereval:IMPORTER",
        "sprout": "pipelines.ingest.importers.sprout:IMPORTER",
        "ulab": "pipelines.ingest.importers.ulab:IMPORTER",
        "zeroeval": "pipelines.ingest.importers.zeroeval:IMPORTER",
    },
)
