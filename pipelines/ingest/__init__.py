"""Ingest: source datasets → queries. One file per way in."""

from __future__ import annotations

from routeyard.pipelines.ingest.compared import compared
from routeyard.pipelines.ingest.ingest import ingest, pin
from routeyard.pipelines.ingest.queries import Ingested
from routeyard.pipelines.ingest.revisions import Revision, revisions

__all__ = ["Ingested", "Revision", "compared", "ingest", "pin", "revisions"]
