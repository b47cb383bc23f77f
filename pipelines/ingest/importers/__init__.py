"""Importers: existing routing benchmarks and evaluations as they are published → a workspace.

To add one: an entry in `importers.yaml`, whose `reader` names a file here and what it calls the
importer.
"""

from __future__ import annotations

from routeyard.pipelines.common.registry import Registry
from routeyard.pipelines.ingest.importers.reading import FORMATS

#: Format → its importer.
IMPORTERS = Registry(
    kind="import format",
    listed="`routeyard import list`",
    group="routeyard.importers",
    builtin={
        name: f"{__name__}.{row.get('reader', f'{name}:IMPORTER')}" for name, row in FORMATS.items()
    },
)
