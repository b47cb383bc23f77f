"""The stages, as plain functions: ingest, collect, label, curate, release, evaluate."""

if __name__ != "routeyard.pipelines":  # found by its bare name: see `routeyard/_aliases.py`
    from routeyard._aliases import alias

    alias(__name__)
