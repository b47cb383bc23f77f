"""`routeyard audit labels`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.options import Json, sealed_off

if TYPE_CHECKING:
    from pipelines.label.audit.audit import Audit


def command(
    benchmark: Annotated[
        str, typer.Argument(help="Name of a built benchmark, its recipe, or a release folder.")
    ],
    workspace: Annotated[Path, typer.Option(help="Workspace of the build.")] = Path("yard"),
    show: Annotated[int, typer.Option(min=0, help="Findings of each kind to print.")] = 10,
    out: Annotated[
        Path | None,
        typer.Option(
            callback=sealed_off, help="Folder for every table behind the findings, as CSV."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say which labels of a build or of any release should not be trusted, and why.

    Looks at: agreement and confusion of scorers per task, models that cannot be
    read, runs whose texts commit to several answers, constants filled in where
    nothing was found, questions where the strong models agree against the reference,
    conflicts among near-duplicates, and stored labels that a regrade contradicts.
    Every model's accuracy is printed over all and over readable answers, with the
    interval its doubtful labels leave open.

    Examples:

        routeyard audit labels zeroeval_gsm

        routeyard audit labels downloads/somebodys_release/1.0.0

        routeyard audit labels recipe.yaml --workspace yard --out findings
    """
    import pyarrow as pa

    from datacards.losses import causes
    from flows.audits.review import Judged, built, sealed
    from flows.cli.results import print_result
    from flows.workspace.reviews import reviews
    from pipelines.label.audit.audit import audit
    from pipelines.label.escalate import add
    from schemas import VERDICTS
    from schemas.leaks import looked_for_duplicates

    found: Judged
    if (Path(benchmark) / "manifest.json").is_file():
        # What people decided before the release is among its verdicts.
        found, decided = sealed(Path(benchmark)), VERDICTS.empty()
    else:
        found = built(benchmark, workspace)
        decided = reviews(workspace, found.name)
    audited = audit(
        found.queries,
        found.responses,
        add(found.verdicts, decided),
        found.labels,
        found.duplicates,
        policy=None if found.recipe is None else found.recipe.label,
    )
    tables = {"queries": found.queries, "responses": found.responses, "labels": found.labels}
    tables |= {"verdicts": found.verdicts, "models": found.table("pool", "models")}
    losses = causes(tables)
    looked = found.recipe is None or looked_for_duplicates(found.recipe.model_dump(mode="json"))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for name, table in audited.tables.items():
            _write_csv(table, out / f"{name}.csv")
    if as_json:
        findings = [
            {"kind": one.kind, "about": one.about, "says": one.says} for one in audited.findings
        ]
        accuracy = audited.tables.get("accuracy", pa.table({})).to_pylist()
        said = {"findings": findings, "accuracy": accuracy, "not_labelled": losses}
        said["duplicates_looked_for"] = looked
        print_result(said, as_json)
        return
    _print(audited, losses, looked=looked, show=show)


def _print(audited: Audit, losses: list[dict[str, Any]], *, looked: bool, show: int) -> None:
    """The report for people: losses, findings by kind, agreement, accuracies."""
    from collections import defaultdict

    from datacards.losses import sentence

    if losses:
        print(f"not labelled ({sum(row['pairs'] for row in losses):,} pairs)")
    for row in losses:
        print(f"  {sentence(row)}\n    next: {row['next']}")
    if not looked:
        print("near-duplicates were not looked for: the recipe has no rule 'dedup'")
    kinds: dict[str, list[str]] = defaultdict(list)
    for one in audited.findings:
        kinds[one.kind].append(f"{one.about}: {one.says}")
    for kind, lines in kinds.items():
        print(f"{kind} ({len(lines)})")
        for line in lines[:show]:
            print(f"  {line}")
        if len(lines) > show:
            print(f"  … and {len(lines) - show:,} more (--show N, or --out FOLDER)")
    print("agreement of scorers")
    for row in audited.tables["agreement"].to_pylist():
        kappa = "undefined" if row["kappa"] is None else f"{row['kappa']:.3f}"
        pair = f"{row['scorer_a']} and {row['scorer_b']}"
        print(f"  {row['task']}: {pair} agree on {row['agree']:.2%} of {row['n']:,}, κ {kappa}")
    print("accuracy, over readable answers, and what doubtful labels leave open")
    for row in audited.tables["accuracy"].to_pylist():
        print(
            f"  {row['model_id']}: {_percent(row['accuracy'])}, "
            f"readable {_percent(row['accuracy_readable'])}, "
            f"[{row['low']:.2%}, {row['high']:.2%}] ({row['doubtful']:,} of {row['n']:,} doubtful)"
        )


def _write_csv(table: object, path: Path) -> None:
    import csv

    rows = table.to_pylist()  # type: ignore[attr-defined]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.column_names)  # type: ignore[attr-defined]
        for row in rows:
            writer.writerow([_cell(value) for value in row.values()])


def _cell(value: object) -> object:
    from schemas.untrusted_text import spreadsheet

    return spreadsheet(" | ".join(map(str, value)) if isinstance(value, list) else value)


def _percent(value: float | None) -> str:
    return "undecided" if value is None else f"{value:.2%}"
