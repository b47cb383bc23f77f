"""`routeyard import`: an existing benchmark or evaluation becomes a recipe to build."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from flows.cli.options import Json, sealed_off


def command(
    format: Annotated[str, typer.Argument(help="Format; `list` names all.")],
    path: Annotated[Path | None, typer.Argument(help="File or folder of that format.")] = None,
    workspace: Annotated[Path, typer.Option(callback=sealed_off, help="Workspace folder.")] = Path(
        "yard"
    ),
    name: Annotated[str | None, typer.Option(help="Name of the benchmark.")] = None,
    as_json: Json = False,
) -> None:
    """Bring in data as they lie in a public repository, and write a recipe for them.

        routeyard import routellm RouteLLM/routellm/evals/mmlu/responses --workspace yard

        routeyard build yard/imports/routellm/recipe.yaml --workspace yard

        routeyard query yard/releases/routellm/1.0.0 @oracle

    What the source does not record stays unknown and is named. Pickles are parsed
    into plain values, never unpickled: nothing in them is run.
    """
    from flows.cli.results import print_result
    from pipelines.errors import BadInput
    from pipelines.ingest.importers import IMPORTERS
    from pipelines.ingest.importers.write import run_import

    if format == "list":
        known = {name: IMPORTERS.get(name) for name in IMPORTERS.names()}
        print_result(
            [
                {"format": n, "title": one.title, "license": one.license, "layout": one.layout}
                for n, one in known.items()
            ],
            as_json,
            *(line for n, one in known.items() for line in _shown(n, one)),
        )
        return
    importer = IMPORTERS.get(format)
    if path is None:
        raise BadInput("no PATH is given", next_step=f"expected: {importer.layout}")
    done = run_import(importer, path, workspace / "imports" / (name or format), name=name)
    if print_result(done, as_json):
        return
    print(
        f"{done.questions:,} questions, {done.models:,} models, {done.answers:,} answers → "
        f"{done.folder} ({done.status})"
    )
    for reason, count in done.left_out.items():
        print(f"left out: {reason}: {count:,}")
    if done.lacks:
        print(f"not recorded by the source: {', '.join(done.lacks)}")
    if rule := done.scorer_agreement:
        print(
            f"grades are the source's own; `{rule.scorer}` agrees on {rule.agrees:,} of "
            f"{rule.tried:,} answers"
        )
        print(f"(to label them here, set `scorer: {rule.scorer}` in recipe.yaml)")
    print(f"next: routeyard build {done.recipe} --workspace {workspace}")


def _shown(name: str, one: Any) -> list[str]:
    """Name, title and licence, and under it the layout, at 80 columns."""
    import textwrap

    indent = " " * 4
    layout = textwrap.wrap(one.layout, 80, initial_indent=indent, subsequent_indent=indent,
                           break_long_words=False, break_on_hyphens=False)  # fmt: skip
    return [f"{name}: {one.title} ({one.license})", *layout]
