"""The stages, as plain functions: ingest, collect, label, curate, release, evaluate."""
