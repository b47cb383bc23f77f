"""Ingest: source datasets → queries. One file per way in."""

from __future__ import annotations

from pipelines.ingest.compared import compared
from pipelines.ingest.ingest import ingest, pin
from pipelines.ingest.queries import Ingested
from pipelines.ingest.revisions import Revision, revisions

__all__ = ["Ingested", "Revision", "compared", "ingest", "pin", "revisions"]
