"""`routeyard recipe schema`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json, sealed_off


def command(
    page: Annotated[
        bool,
        typer.Option("--page", help="A page for people, with what a mapping may say."),
    ] = False,
    pool: Annotated[bool, typer.Option("--pool", help="The schema of a pool file.")] = False,
    out: Annotated[
        Path | None, typer.Option(callback=sealed_off, help="Write it to this file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the JSON Schema of a recipe: every key, what it means, its default and limits.

    An editor that speaks YAML completes and checks a recipe whose first line names the file.

    Examples:

        routeyard recipe schema --out recipe.schema.json

        # yaml-language-server: $schema=recipe.schema.json

        routeyard recipe schema --page
    """
    import json

    from pipelines.ingest.mappings import page as mappings
    from schemas.recipe.reference import json_schema, pool_schema, reference

    if page and not as_json:
        text = "\n".join([reference(), *mappings()])
    else:
        text = json.dumps(pool_schema() if pool else json_schema(), indent=1, ensure_ascii=False)
        text += "\n"
    if out is None:
        print(text, end="")
    else:
        out.write_text(text, encoding="utf-8", newline="\n")
        print(out)
