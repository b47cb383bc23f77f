"""`routeyard sources check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from routeyard.flows.cli.options import YARD, Output, WrittenWorkspace

# `routeyard import`: an existing benchmark or evaluation becomes a recipe to build.


def import_command(
    format: str,
    path: Annotated[Path | None, typer.Argument()] = None,
    workspace: WrittenWorkspace = YARD,
    name: str | None = None,
) -> Output:
    """Read data in the layout of a public repository, and write a recipe for them.

        routeyard import routellm RouteLLM/routellm/evals/mmlu/responses --workspace yard

        routeyard build yard/imports/routellm/recipe.yaml --workspace yard

        routeyard query yard/releases/routellm/1.0.0 @oracle

    What the source does not record stays unknown and is named. Pickles are parsed
    into plain values, never unpickled: nothing in them is run.

    Args:
        format: Format; `list` names all.
        path: File or folder of that format.
        name: Name of the benchmark.
    """
    from routeyard.pipelines.ingest.importers import IMPORTERS
    from routeyard.pipelines.ingest.importers.write import run_import
    from routeyard.schemas.errors import BadInput

    if format == "list":
        known = {n: IMPORTERS.get(n) for n in IMPORTERS.names()}
        rows = [
            {"format": n, "title": one.title, "license": one.license, "layout": one.layout}
            for n, one in known.items()
        ]
        return Output(rows, (line for row in rows for line in _shown(**row)))
    importer = IMPORTERS.get(format)
    if path is None:
        raise BadInput("no PATH is given", next_step=f"expected: {importer.layout}")
    done = run_import(importer, path, workspace / "imports" / (name or format), name=name)
    lines = [
        f"{done.questions:,} questions, {done.models:,} models, {done.answers:,} answers → "
        f"{done.folder} ({done.status})",
        *(f"left out: {reason}: {count:,}" for reason, count in done.left_out.items()),
    ]
    if done.steps:
        lines.append(
            f"{done.steps:,} steps → {done.folder / 'steps.parquet'} (`routeyard replay` reads it)"
        )
    if done.lacks:
        lines.append(f"not recorded by the source: {', '.join(done.lacks)}")
    if rule := done.scorer_agreement:
        lines.append(
            f"grades are the source's own; `{rule.scorer}` agrees on {rule.agrees:,} of "
            f"{rule.tried:,} answers\n(to label them here, set `scorer: {rule.scorer}` in "
            "recipe.yaml)"
        )
    lines += _audited(done.folder)
    return Output(done, [*lines, f"next: routeyard build {done.recipe} --workspace {workspace}"])


def _audited(folder: Path) -> list[str]:
    """What the audit says of the imported answers: the verdict and the grave findings."""
    from routeyard.datacards.reports.health import whom
    from routeyard.flows.audits import audit_import

    found = audit_import(folder)
    grave = [one for one in found.findings if one.severity == "grave"]
    doubts = sum(one.severity == "doubt" for one in found.findings)
    lines = [f"audit: {found.verdict} ({len(grave):,} grave findings, {doubts:,} doubts)"]
    lines += [f"  {one.kind}: {whom(one.about, one.parts)}: {one.says}" for one in grave[:5]]
    if grave or doubts:
        lines.append(f"  all of them: routeyard audit {folder}")
    return lines


def _shown(format: str, title: str, license: str, layout: str) -> list[str]:
    """Name, title and licence, and under it the layout, at 80 columns."""
    import textwrap

    wrapper = textwrap.TextWrapper(80, initial_indent="    ", subsequent_indent="    ",
                                   break_long_words=False, break_on_hyphens=False)  # fmt: skip
    return [f"{format}: {title} ({license})", *wrapper.wrap(layout)]


# `routeyard sources list`.


def sources_list_command(
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
    from routeyard.pipelines.ingest.catalog import domains, entry
    from routeyard.schemas.errors import BadInput, did_you_mean

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


# `routeyard sources show`.


def sources_show_command(
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


def sources_check_command(
    name: str,
    file: str | None = None,
    rows: Annotated[int, typer.Option(min=1, max=1000)] = 5,
) -> Output:
    """Read a few rows of a source and list columns that differ from the catalog's.

    Exits 0 when every row becomes a query, 3 when not.

    Examples:

        routeyard sources check gsm8k

        routeyard sources check gsm8k --file test.jsonl

    Args:
        name: A source of the catalog.
        file: CSV, JSONL or Parquet, or a glob, instead of the hub.
        rows: Rows to read.
    """
    from routeyard.pipelines.common.errors import SourceError
    from routeyard.pipelines.ingest.catalog import entry
    from routeyard.pipelines.ingest.sources import check, sample

    found = entry(name)
    read = sample(found.source, file, rows=rows)
    if not read:
        raise SourceError("there are no rows", where=str(file or found.source.hub_id))
    done = check(found, read)
    lines = [f"{done.rows} rows read of {file or found.source.hub_id or found.source.path}"]
    for words, columns in (
        ("not in the data", done.missing),
        ("not in the catalog", done.new),
        ("unconfirmed in the catalog, and there", done.unconfirmed),
    ):
        if columns:
            lines.append(f"{words}: {', '.join(columns)}")
    if done.fits:
        first = done.queries[0]
        lines.append(
            f"the rows become {len(done.queries)} queries; the first:\n\n{first['prompt']}\n\n"
            f"references: {first['references']}"
        )
    else:
        lines.append(f"the rows do not become queries: {done.fault or 'no row was left'}")
    return Output(done, lines, exit_code=0 if done.fits else 3)
