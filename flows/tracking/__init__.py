"""Prefect beyond tasks: settings, retries, limits, notices, artifacts; start at `run.py`."""
