"""`routeyard sources show`."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli.options import Json


def command(
    name: Annotated[str, typer.Argument(help="A source of the catalog.")],
    as_json: Json = False,
) -> None:
    """Show one source: where it lies, how its columns become a query, what is known of it.

    The first part is YAML that a recipe's `sources` list takes as it is.

    Example:

        routeyard sources show gsm8k
    """
    import yaml

    from flows.cli.results import print_result
    from pipelines.ingest.catalog import entry

    found = entry(name)
    source = found.source.model_dump(mode="json", exclude_unset=True)
    said = {"source": source, "columns": found.columns, "unconfirmed": found.unconfirmed}
    said |= {"evidence": found.evidence, "citation": found.citation, "defects": found.defects}
    if print_result(said | {"becomes": found.becomes}, as_json):
        return
    print(yaml.safe_dump([source], sort_keys=False, allow_unicode=True, width=100), end="")
    marked = [f"{c} (unconfirmed)" if c in found.unconfirmed else c for c in found.columns]
    print(f"\ncolumns:   {', '.join(marked)}")
    print(f"evidence:  {found.evidence}")
    print(f"citation:  {found.citation}")
    for defect in found.defects:
        print(f"defect:    {defect}")
    print("\na row of ours becomes:")
    shown = dict(found.becomes[0])
    print(yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=100), end="")
