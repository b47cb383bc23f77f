"""Prefect flows and the command line: read, call a stage, write.

`build.py` holds the order of the stages; read it first.
"""
