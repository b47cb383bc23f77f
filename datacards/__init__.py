"""Dataset cards, Croissant metadata, plots and publishing; every number comes from the release."""

if __name__ != "routeyard.datacards":  # found by its bare name: see `routeyard/_aliases.py`
    from routeyard._aliases import alias

    alias(__name__)
