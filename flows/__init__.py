"""Prefect flows and the command line: read, call a stage, write."""
