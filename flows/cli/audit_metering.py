"""`routeyard audit metering`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import Json


def command(
    place: Annotated[Path | None, typer.Argument(hidden=True)] = None,
    workspace: Annotated[Path, typer.Option(help="The workspace.")] = Path("yard"),
    recipe: Annotated[
        str | None, typer.Option(help="Recipe whose thresholds, prices and waivers count.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check whether usage, prices and served models are what they claim to be.

    Reads the ledger and calls no model. In a workspace of recorded answers, which has none, it
    reads the recipe's recording, or without --recipe what the newest build's audit found. Each
    finding names its rows: question and sample, or file and line of a recording.

    Exits 3 when a finding stands that the recipe does not waive (`release.waivers`: gate
    `metering`, or `metering:<check>` for one check).

    Examples:

        routeyard audit metering --workspace yard

        routeyard audit metering --workspace yard --recipe my_benchmark.yaml --json
    """
    from dataclasses import asdict

    from flows.audits.metering import audit_workspace
    from flows.cli.results import print_result
    from pipelines.metering.findings import SHOWN

    said = audit_workspace(place or workspace, recipe)
    stands, waived = said.stands, said.waived
    if as_json:
        whole = [(f, None) for f in stands] + [(f, w.reason) for f, w in waived]
        rows = [asdict(f) | {"waived": why, "at": said.rows(f, SHOWN)} for f, why in whole]
        print_result(rows, as_json)
    else:
        for finding in stands:
            rows_shown = ", ".join(said.rows(finding, 5))
            more = ", …" if finding.count > 5 else ""
            print(f"{finding.check}: {finding.model_id}: {finding.count:,} {finding.says}")
            print(f"  rows: {rows_shown}{more}")
        for finding, waiver in waived:
            print(f"{finding.check}: {finding.model_id}: waived: {waiver.reason}")
        if not stands:
            print("metering: nothing stands" if waived else "metering: no findings")
        if said.of != "the ledger":
            print(f"looked at: {said.of}")
    if stands:
        raise typer.Exit(3)
