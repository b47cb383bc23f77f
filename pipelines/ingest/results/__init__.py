"""A stranger's results, whatever their layout, as the normal form of `schemas/recording.py`."""

from __future__ import annotations

from routeyard.pipelines.ingest.results.read import AggregatesOnly, Results, read_results
from routeyard.pipelines.ingest.results.values import ReadingNote

__all__ = ["AggregatesOnly", "ReadingNote", "Results", "read_results"]
