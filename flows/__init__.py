"""Prefect flows and the command line: read, call a stage, write.

`build.py` holds the order of the stages; read it first.
"""

if __name__ != "routeyard.flows":  # found by its bare name: see `routeyard/_aliases.py`
    from routeyard._aliases import alias

    alias(__name__)
