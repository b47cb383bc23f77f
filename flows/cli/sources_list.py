"""`routeyard sources list`."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli.options import Json


def command(
    domain: Annotated[str | None, typer.Option(help="Only this domain.")] = None,
    as_json: Json = False,
) -> None:
    """List the source datasets that a recipe can name, and how sure their columns are.

    An unconfirmed column is one that no documentation of the dataset shows;
    `routeyard sources check NAME` looks at the data themselves.

    Example:

        routeyard sources list --domain math
    """
    from flows.cli.results import print_result
    from pipelines.errors import BadInput, did_you_mean
    from pipelines.ingest.catalog import domains, entry

    known = domains()
    if domain is not None and domain not in known:
        raise BadInput(f"there is no domain {domain!r}", next_step=did_you_mean(domain, known))
    entries = [entry(n) for d, names in known.items() if domain in (None, d) for n in names]
    if as_json:
        rows = [
            {
                "name": one.name,
                "domain": one.source.domain,
                "dataset": one.source.hub_id or one.source.path,
                "scorer": one.source.scorer,
                "license": one.source.license,
                "columns": len(one.columns),
                "unconfirmed": list(one.unconfirmed),
            }
            for one in entries
        ]
        print_result(rows, as_json)
        return
    for one in entries:
        doubt = f"  unconfirmed: {', '.join(one.unconfirmed)}" if one.unconfirmed else ""
        where = one.source.hub_id or one.source.path
        print(f"{one.name:<20} {one.source.domain:<12} {one.source.scorer:<18} {where}{doubt}")
    columns = sum(len(one.columns) for one in entries)
    doubtful = sum(len(one.unconfirmed) for one in entries)
    share = 100 * doubtful / columns
    print(f"{len(entries)} sources, {doubtful} of {columns} columns unconfirmed ({share:.1f} %)")
