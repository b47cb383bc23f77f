"""`routeyard sources list`."""

from __future__ import annotations

from typing import Any

from routeyard.flows.cli.results import Output


def command(
    domain: str | None = None,
) -> Output:
    """List the source datasets that a recipe can name, and how sure their columns are.

    An unconfirmed column is one that no documentation of the dataset shows;
    `routeyard sources check NAME` looks at the data themselves.

    Example:

        routeyard sources list --domain math

    Args:
        domain: Only this domain.
    """
    from routeyard.pipelines.errors import BadInput, did_you_mean
    from routeyard.pipelines.ingest.catalog import domains, entry

    known = domains()
    if domain is not None and domain not in known:
        raise BadInput(f"there is no domain {domain!r}", next_step=did_you_mean(domain, known))
    rows: list[dict[str, Any]] = [
        {
            "name": one.name,
            "domain": one.source.domain,
            "dataset": one.source.hub_id or one.source.path,
            "scorer": one.source.scorer,
            "license": one.source.license,
            "columns": len(one.columns),
            "unconfirmed": list(one.unconfirmed),
        }
        for group, names in known.items()
        if domain in (None, group)
        for one in map(entry, names)
    ]
    lines = [
        f"{row['name']:<20} {row['domain']:<12} {row['scorer']:<18} {row['dataset']}"
        + (f"  unconfirmed: {', '.join(row['unconfirmed'])}" if row["unconfirmed"] else "")
        for row in rows
    ]
    columns = sum(row["columns"] for row in rows)
    doubtful = sum(len(row["unconfirmed"]) for row in rows)
    share = 100 * doubtful / columns
    last = f"{len(rows)} sources, {doubtful} of {columns} columns unconfirmed ({share:.1f} %)"
    return Output(rows, [*lines, last])
