"""`routeyard relabel`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

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
            f"were by {one.before!r}; the models were asked to answer for {one.before!r} "
            "(`routeyard plan` says which prompts change)"
        )
    if found.recipe is None:
        yield "the recipe is not where it was: the default policy was used"
    yield (
        f"{found['responses'].num_rows:,} responses read again, no model asked: "
        f"{figures['labels']:,} labels change ({figures['flipped']:,} to another decision), "
        f"{figures['model_ranks']} model ranks, {figures['task_ranks']} task ranks"
    )
    other = [
        row for row in changed.labels.to_pylist() if _decision(row, 0)[0] != _decision(row, 1)[0]
    ]
    for row in other[:show]:
        before, after = (" ".join(_decision(row, side)) for side in (0, 1))
        yield f"  {row['query_id']} {row['model_id']}: {before} → {after}"
    if len(other) > show:
        yield f"  … and {len(other) - show:,} more (--show N, or --out FOLDER)"
    if same := changed.labels.num_rows - len(other):
        yield f"  {same:,} labels keep their score and are decided by another scorer (--out FOLDER)"
    for name, table in (("model_id", changed.models), ("task", changed.tasks)):
        for row in table.to_pylist():
            was, now = (percent(row[f"accuracy_{side}"]) for side in ("before", "after"))
            places = f"rank {row['rank_before']} → {row['rank_after']}"
            fewer = row["labelled_before"] != row["labelled_after"]
            of = f", of {row['labelled_before']} → {row['labelled_after']} decided labels"
            yield f"  {row[name]}: {was} → {now}{of if fewer else ''}, {places}"


def _decision(row: dict[str, Any], side: int) -> tuple[str, str]:
    """A label before (0) or after (1) the change: its score, and who decided it."""
    score, by = (row[f"{name}_{('before', 'after')[side]}"] for name in ("score", "decided_by"))
    if score is None:
        return ("undecided", f"({by})") if by else ("no label", "")
    return f"{score:g}", f"by {by}"
