"""`routeyard relabel`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json, sealed_off


def command(
    benchmark: Annotated[str, typer.Argument(help="Name of a built benchmark, or its recipe.")],
    workspace: Annotated[Path, typer.Option(help="Workspace of the build.")] = Path("yard"),
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 2,
    show: Annotated[int, typer.Option(min=0, help="Changed labels to print.")] = 20,
    out: Annotated[
        Path | None,
        typer.Option(callback=sealed_off, help="Folder for the new verdicts, labels and changes."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run scorers and court again over stored responses and say what changes.

    Nothing is asked of any model: rule scorers read the stored texts again, verdicts
    of verifiers, judges and people are carried over, and the recipe's policy as it
    is now decides. The build itself is not touched; `routeyard build` takes a changed
    scorer or policy over, and asks no model either.

    Examples:

        routeyard relabel zeroeval_gsm

        routeyard relabel recipe.yaml --workspace yard --show 100 --out relabelled
    """
    from flows.audits.review import built
    from flows.cli.results import print_result
    from flows.workspace.reviews import reviews
    from flows.workspace.stage_folders import write_table
    from pipelines.label.aggregate import decide
    from pipelines.label.escalate import add
    from pipelines.label.relabel import changes, keep_others
    from pipelines.label.rules import file_verdicts
    from schemas.recipe import Label

    found = built(benchmark, workspace)
    policy = found.recipe.label if found.recipe else Label()
    queries, responses = found.queries, found.responses
    options = {
        "run_code_without_isolation": policy.run_code_without_isolation,
        "code_modules": policy.code_modules,
    }
    ruled = file_verdicts(queries, responses, jobs=jobs, options=options)
    stored = add(found.verdicts, reviews(workspace, found.name))
    verdicts = keep_others(stored, ruled)
    labels = decide(queries, responses, verdicts, policy=policy)
    changed = changes(queries, found.labels, labels)
    if out is not None:
        tables = {"verdicts": verdicts, "labels": labels, "changed_labels": changed.labels}
        tables |= {"changed_models": changed.models, "changed_tasks": changed.tasks}
        for name, table in tables.items():
            write_table(table, out / f"{name}.parquet")
    if print_result({**changed.figures, "responses": responses.num_rows}, as_json):
        return
    figures = changed.figures
    if found.recipe is None:
        print("the recipe is not where it was: the default policy was used")
    print(
        f"{responses.num_rows:,} responses read again, no model asked: "
        f"{figures['labels']:,} labels change ({figures['flipped']:,} to another decision), "
        f"{figures['model_ranks']} model ranks, {figures['task_ranks']} task ranks"
    )
    for row in changed.labels.slice(0, show).to_pylist():
        before, after = (
            f"{row[f'score_{side}']} by {row[f'decided_by_{side}']}" for side in ("before", "after")
        )
        print(f"  {row['query_id']} {row['model_id']}: {before} → {after}")
    if changed.labels.num_rows > show:
        print(f"  … and {changed.labels.num_rows - show:,} more (--show N, or --out FOLDER)")
    for name, table in (("model_id", changed.models), ("task", changed.tasks)):
        for row in table.to_pylist():
            was, now = (_percent(row[f"accuracy_{side}"]) for side in ("before", "after"))
            places = f"rank {row['rank_before']} → {row['rank_after']}"
            print(f"  {row[name]}: {was} → {now}, {places}")


def _percent(value: float | None) -> str:
    return "undecided" if value is None else f"{value:.2%}"
