"""`routeyard import`: an existing benchmark or evaluation becomes a recipe to build."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routeyard.flows.cli.options import YARD, WrittenWorkspace
from routeyard.flows.cli.results import Output


def command(
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
    from routeyard.pipelines.errors import BadInput
    from routeyard.pipelines.ingest.importers import IMPORTERS
    from routeyard.pipelines.ingest.importers.write import run_import

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
    from routeyard.datacards.reports.audit import whom
    from routeyard.flows.audits.imported import audit_import

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
