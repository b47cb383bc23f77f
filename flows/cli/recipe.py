"""Start."""

from __future__ import annotations

from typing import Annotated

import typer

from routeyard.flows.cli.options import OptionalWrittenPath, Output

# `routeyard recipe check`.


def recipe_check_command(
    recipe: str,
    print_: Annotated[bool, typer.Option("--print")] = False,
    defaults: Annotated[bool, typer.Option("--defaults")] = False,
) -> Output:
    """List all faults of a recipe at once, each with its line.

    Exits 2 when there are any. Keys and values, rules and scorers, the pool file, and local
    sources: a file that is not there, a column that does not exist, a `where` that matches nothing.
    Recorded answers are read as a build reads them: columns that no row has and models that are not
    in the pool, of all recordings; then, once these and the questions are right, ids that match no
    question or occur twice, and what the metering audit would stop. Hub datasets and providers are
    not asked.

    With --print the recipe is printed instead, as YAML without keys that have their default, and
    with --defaults with every key: curation rules show the defaults of their parameters, and
    sources from the catalog are written out. The output is itself a recipe.

    Examples:

        routeyard recipe check my_benchmark.yaml

        routeyard recipe check zeroeval_gsm --defaults

    Args:
        print_: Print the recipe, without keys that have their default.
        defaults: Print the recipe with every key.
    """
    if print_ or defaults:
        return _printed(recipe, defaults)
    from routeyard.flows.recipe_check import faults

    notes: list[str] = []
    result = faults(recipe, notes)
    counted = f"{len(result)} fault{'s' if len(result) > 1 else ''}" if result else "no fault"
    lines = [*(f"note: {note}" for note in notes), *map(str, result), f"{recipe}: {counted}"]
    return Output(result, lines, exit_code=2 if result else 0)


# `routeyard recipe schema`.


def recipe_schema_command(
    page: Annotated[bool, typer.Option("--page")] = False,
    pool: Annotated[bool, typer.Option("--pool")] = False,
    out: OptionalWrittenPath = None,
) -> Output:
    """Print the JSON Schema of a recipe, or every key as a page.

    It says of each key what it means, its default and limits. An editor that speaks YAML completes
    and checks a recipe whose first line names the file.

    Examples:

        routeyard recipe schema --out recipe.schema.json

        # yaml-language-server: $schema=recipe.schema.json

        routeyard recipe schema --page

    Args:
        page: Print a page for people, mappings of sources included.
        pool: The schema of a pool file.
        out: Write it to this file.
    """
    import json

    from routeyard.pipelines.ingest.queries import page as mappings
    from routeyard.schemas.recipe.reference import json_schema, pool_schema, reference

    schema = pool_schema() if pool else json_schema()
    text = (
        "\n".join([reference(), mappings()])
        if page
        else json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
    )
    if out is None:
        return Output(schema, text.removesuffix("\n"))
    out.write_text(text, encoding="utf-8", newline="\n")
    return Output({"path": out}, str(out))


def _printed(recipe: str, defaults: bool) -> Output:
    """A recipe as YAML, which is itself a recipe."""
    import yaml

    from routeyard.flows.recipe import load, with_defaults

    loaded = load(recipe)[0]
    if defaults:
        shown = with_defaults(loaded)
    else:
        shown = loaded.model_dump(mode="json", exclude_defaults=True)
    text = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True)
    return Output(shown, text.rstrip("\n"))
