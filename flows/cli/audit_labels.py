"""`routeyard audit labels`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from routeyard.flows.cli.options import YARD, OptionalWrittenPath, Workspace
from routeyard.flows.cli.results import Output, write_csv

if TYPE_CHECKING:
    from routeyard.flows.audits.labels import LabelAudit


def command(
    benchmark: str,
    workspace: Workspace = YARD,
    show: Annotated[int, typer.Option(min=0)] = 10,
    out: OptionalWrittenPath = None,
) -> Output:
    """List labels of a build or of any release that should not be trusted, and why.

    Looks at: agreement and confusion of scorers per task, models that cannot be
    read, runs whose texts commit to several answers, constants filled in where
    nothing was found, references that are probably wrong, texts that are no answers (stubs,
    refusals, cut-off answers, errors of a harness, constants), conflicts among
    near-duplicates, and stored labels that a regrade contradicts.
    Every model's accuracy is printed over all and over readable answers, with the
    interval its doubtful labels leave open.

    Examples:

        routeyard audit labels zeroeval_gsm

        routeyard audit labels downloads/somebodys_release/1.0.0

        routeyard audit labels recipe.yaml --workspace yard --out findings

    Args:
        benchmark: Name of a built benchmark, its recipe, or a release folder.
        show: Findings of each kind to print.
        out: Folder for every table behind the findings, as CSV.
    """
    from routeyard.flows.audits.labels import audit_labels

    found = audit_labels(benchmark, workspace)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for name, table in found.audit.tables.items():
            write_csv(table, out / f"{name}.csv")
    data = {
        "findings": [
            {"kind": one.kind, "about": one.about, "says": one.says}
            | ({} if one.probability is None else {"probability": one.probability})
            for one in found.audit.findings
        ],
        "accuracy": found.audit.tables.get("accuracy", []),
        "not_labelled": found.losses,
        "duplicates_looked_for": found.duplicates_looked_for,
    }
    return Output(data, _lines(found, show))


def _lines(found: LabelAudit, show: int) -> Iterator[str]:
    """The report for people: losses, findings by kind, agreement, accuracies."""
    from routeyard.datacards.losses import sentence

    if found.losses:
        yield f"not labelled ({sum(row['pairs'] for row in found.losses):,} pairs)"
    for row in found.losses:
        yield f"  {sentence(row)}\n    next: {row['next']}"
    if not found.duplicates_looked_for:
        yield "near-duplicates were not looked for: the recipe has no rule 'dedup'"
    kinds: dict[str, list[str]] = defaultdict(list)
    for one in found.audit.findings:
        kinds[one.kind].append(f"{one.about}: {one.says}")
    for kind, lines in kinds.items():
        yield f"{kind} ({len(lines)})"
        yield from (f"  {line}" for line in lines[:show])
        if len(lines) > show:
            yield f"  … and {len(lines) - show:,} more (--show N, or --out FOLDER)"
    yield "agreement of scorers"
    for row in found.audit.tables["agreement"].to_pylist():
        kappa = "undefined" if row["kappa"] is None else f"{row['kappa']:.3f}"
        pair = f"{row['scorer_a']} and {row['scorer_b']}"
        yield f"  {row['task']}: {pair} agree on {row['agree']:.2%} of {row['n']:,}, κ {kappa}"
    yield "accuracy, over readable answers, and what doubtful labels leave open"
    for row in found.audit.tables["accuracy"].to_pylist():
        yield (
            f"  {row['model_id']}: {percent(row['accuracy'])}, "
            f"readable {percent(row['accuracy_readable'])}, "
            f"[{row['low']:.2%}, {row['high']:.2%}] ({row['doubtful']:,} of {row['n']:,} doubtful)"
        )


def percent(value: float | None) -> str:
    """An accuracy; `undecided` where no label exists."""
    return "undecided" if value is None else f"{value:.2%}"
