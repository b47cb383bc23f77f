"""`routeyard sources show`."""

from __future__ import annotations

from routeyard.flows.cli.results import Output


def command(
    name: str,
) -> Output:
    """Show one source: its address, how its columns become a query, what is known of it.

    The first part is YAML that a recipe's `sources` list takes as it is.

    Example:

        routeyard sources show gsm8k

    Args:
        name: A source of the catalog.
    """
    import yaml

    from routeyard.pipelines.ingest.catalog import entry

    found = entry(name)
    source = found.source.model_dump(mode="json", exclude_unset=True)
    data = {"source": source, "columns": found.columns, "unconfirmed": found.unconfirmed}
    data |= {"evidence": found.evidence, "citation": found.citation, "defects": found.defects}
    one, row = (
        yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=100).rstrip("\n")
        for shown in ([source], dict(found.becomes[0]))
    )
    marked = [f"{c} (unconfirmed)" if c in found.unconfirmed else c for c in found.columns]
    lines = [
        f"{one}\n\ncolumns:   {', '.join(marked)}",
        f"evidence:  {found.evidence}",
        f"citation:  {found.citation}",
        *(f"defect:    {defect}" for defect in found.defects),
        f"\nOne row of the dataset becomes:\n{row}",
    ]
    return Output(data | {"becomes": found.becomes}, lines)
