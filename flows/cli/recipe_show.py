"""`routeyard recipe show`."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli.options import Json


def command(
    recipe: Annotated[str, typer.Argument(help="A recipe file, or the name of one that ships.")],
    as_json: Json = False,
) -> None:
    """Print a recipe with every default filled in, as YAML.

    The output is itself a recipe. Curation rules show the defaults of their
    parameters; sources from the catalog are written out.

    Example:

        routeyard recipe show zeroeval_gsm
    """
    import yaml

    from flows.cli.results import print_result
    from flows.recipe import load
    from pipelines.curate import RULES
    from pipelines.ingest.catalog import from_catalog

    checked, _ = load(recipe)
    shown = checked.model_dump(mode="json")
    shown["sources"] = [from_catalog(s).model_dump(mode="json") for s in checked.sources]
    shown["curate"] = [
        {"rule": rule.rule, **RULES.get(rule.rule).defaults, **rule.parameters}
        for rule in checked.curate
    ]
    text = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True)
    print_result(shown, as_json, text.rstrip("\n"))
