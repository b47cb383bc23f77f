"""`routeyard prices`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json, sealed_off


def command(
    recipe: Annotated[str, typer.Argument(help="A recipe whose pool has `price_list` providers.")],
    out: Annotated[
        Path, typer.Option(callback=sealed_off, help="File to write (YAML); must be new.")
    ],
    as_json: Json = False,
) -> None:
    """Write today's prices of the providers' own lists to a dated file.

    A provider with `price_list: openrouter` is asked for its model list. Name the file in the
    recipe (`pool.prices`), so that a build never depends on the day it runs.

    Example:

        routeyard prices my_benchmark.yaml --out prices-2026-11.yaml
    """
    from flows.audits.reprice import write_prices
    from flows.cli.results import print_result

    count = write_prices(recipe, out)
    text = f"{count} prices in {out}; set 'pool.prices: {out.name}' in the recipe"
    print_result({"prices": count, "path": out}, as_json, text)
