"""`routeyard relabel`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from routeyard.flows.cli.audit_labels import percent
from routeyard.flows.cli.options import YARD, Jobs, OptionalWrittenPath, Workspace
from routeyard.flows.cli.results import Output

if TYPE_CHECKING:
    from routeyard.flows.audits.judged import Judged
    from routeyard.pipelines.label.recipe_scorers import ScorerChange
    from routeyard.pipelines.label.relabel import LabelChanges


def command(
    benchmark: str,
    workspace: Workspace = YARD,
    jobs: Jobs = 2,
    show: Annotated[int, typer.Option(min=0)] = 20,
    out: OptionalWrittenPath = None,
) -> Output:
    """Run scorers and policy again over stored responses and list what changes.

    Nothing is asked of any model: the scorers that the recipe names now read the stored
    texts again, verdicts of verifiers, judges and people are carried over, and the recipe's
    policy as it is now decides. Sources whose scorer changed are listed. The build itself
    is not touched; `routeyard build` takes a changed scorer or policy over.

    Examples:

        routeyard relabel zeroeval_gsm

        routeyard relabel recipe.yaml --workspace yard --show 100 --out relabelled

    Args:
        show: Changed labels to print.
        out: Folder for the new verdicts, labels and changes.
    """
    from routeyard.flows.audits.labels import relabel

    changed, found, scorers = relabel(benchmark, workspace, jobs=jobs, out=out)
    data = {**changed.figures, "responses": found["responses"].num_rows}
    data |= {"scorers": [one._asdict() for one in scorers]}
    return Output(data, _lines(changed, found, scorers, show))


def _lines(
    changed: LabelChanges, found: Judged, scorers: list[ScorerChange], show: int
) -> Iterator[str]:
    figures = changed.figures
    for one in scorers:
        yield (
            f"source {one.source!r}: {one.questions:,} questions are read by {one.after!r}, and "
            f"were by {one.before!r}; the models were told how to answer for {one.before!r} "
            "(`routeyard plan` says which prompts change)"
        )
    if found.recipe is None:
        yield "the recipe is not where it was: the default policy was used"
    yield (
        f"{found['responses'].num_rows:,} responses read again, no model asked: "
        f"{figures['labels']:,} labels change ({figures['flipped']:,} to another decision), "
        f"{figures['model_ranks']} model ranks, {figures['task_ranks']} task ranks"
    )
    for row in changed.labels.slice(0, show).to_pylist():
        before, after = (
            f"{row[f'score_{side}']} by {row[f'decided_by_{side}']}" for side in ("before", "after")
        )
        yield f"  {row['query_id']} {row['model_id']}: {before} → {after}"
    if changed.labels.num_rows > show:
        yield f"  … and {changed.labels.num_rows - show:,} more (--show N, or --out FOLDER)"
    for name, table in (("model_id", changed.models), ("task", changed.tasks)):
        for row in table.to_pylist():
            was, now = (percent(row[f"accuracy_{side}"]) for side in ("before", "after"))
            places = f"rank {row['rank_before']} → {row['rank_after']}"
            yield f"  {row[name]}: {was} → {now}, {places}"
