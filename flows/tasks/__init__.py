"""Prefect tasks, one file per stage: read, call the stage, write; start at `ingest.py`."""
