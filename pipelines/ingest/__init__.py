"""Ingest: source datasets → queries. One file per way in."""

from __future__ import annotations

from routeyard.pipelines.ingest.queries import Ingested
from routeyard.pipelines.ingest.sources import Revision, compared, ingest, pin, revisions

__all__ = ["Ingested", "Revision", "compared", "ingest", "pin", "revisions"]
