"""`routeyard recipe show`."""

from __future__ import annotations

from typing import Annotated

import typer

from routeyard.flows.cli.results import Output


def command(recipe: str, defaults: Annotated[bool, typer.Option("--defaults")] = False) -> Output:
    """Print a recipe as YAML, without keys that have their default.

    The output is itself a recipe. With --defaults it has every key: curation rules show the
    defaults of their parameters, and sources from the catalog are written out.

    Examples:

        routeyard recipe show demo

        routeyard recipe show zeroeval_gsm --defaults

    Args:
        defaults: Print every key with its default.
    """
    import yaml

    from routeyard.flows.recipe import load, with_defaults

    loaded = load(recipe)[0]
    if defaults:
        shown = with_defaults(loaded)
    else:
        shown = loaded.model_dump(mode="json", exclude_defaults=True)
    text = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True)
    return Output(shown, text.rstrip("\n"))
