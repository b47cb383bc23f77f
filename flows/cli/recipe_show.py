"""`routeyard recipe show`."""

from __future__ import annotations

from routeyard.flows.cli.results import Output


def command(recipe: str) -> Output:
    """Print a recipe with every default filled in, as YAML.

    The output is itself a recipe. Curation rules show the defaults of their
    parameters; sources from the catalog are written out.

    Example:

        routeyard recipe show zeroeval_gsm
    """
    import yaml

    from routeyard.flows.recipe import load, with_defaults

    shown = with_defaults(load(recipe)[0])
    text = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True)
    return Output(shown, text.rstrip("\n"))
