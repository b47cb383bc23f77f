"""Prefect tasks of the stages: read, call the stage, write."""
