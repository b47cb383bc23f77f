"""`routeyard prices`."""

from __future__ import annotations

from routeyard.flows.cli.options import WrittenPath
from routeyard.flows.cli.results import Output


def command(
    recipe: str,
    out: WrittenPath,
) -> Output:
    """Write today's prices of the providers' own lists to a dated file.

    A provider with `price_list: openrouter` is asked for its model list. Name the file in the
    recipe (`pool.prices`), so that a build never depends on the day it runs.

    Example:

        routeyard prices my_benchmark.yaml --out prices-2026-11.yaml

    Args:
        out: File to write (YAML); must be new.
    """
    from routeyard.flows.audits.reprice import write_prices

    count = write_prices(recipe, out)
    text = f"{count} prices in {out}; set 'pool.prices: {out.name}' in the recipe"
    return Output({"prices": count, "path": out}, text)
