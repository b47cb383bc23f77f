"""`routeyard recipe schema`."""

from __future__ import annotations

from typing import Annotated

import typer

from routeyard.flows.cli.options import OptionalWrittenPath
from routeyard.flows.cli.results import Output


def command(
    page: Annotated[bool, typer.Option("--page")] = False,
    pool: Annotated[bool, typer.Option("--pool")] = False,
    out: OptionalWrittenPath = None,
) -> Output:
    """Print the JSON Schema of a recipe: every key, what it means, its default and limits.

    An editor that speaks YAML completes and checks a recipe whose first line names the file.

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

    from routeyard.pipelines.ingest.mappings import page as mappings
    from routeyard.schemas.recipe.reference import json_schema, pool_schema, reference

    schema = pool_schema() if pool else json_schema()
    text = (
        "\n".join([reference(), *mappings()])
        if page
        else json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
    )
    if out is None:
        return Output(schema, text.removesuffix("\n"))
    out.write_text(text, encoding="utf-8", newline="\n")
    return Output({"path": out}, str(out))
