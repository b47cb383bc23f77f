"""`routeyard audit metering`."""

from __future__ import annotations

from dataclasses import asdict

from routeyard.flows.cli.options import YARD, OldPlace, Workspace
from routeyard.flows.cli.results import Output


def command(
    place: OldPlace = None,
    workspace: Workspace = YARD,
    recipe: str | None = None,
) -> Output:
    """Check whether usage, prices and served models are what they claim to be.

    Reads the ledger and calls no model. In a workspace of recorded answers, which has none, it
    reads the recipe's recording, or without --recipe what the newest build's audit found. Each
    finding names its rows: question and sample, or file and line of a recording.

    Exits 3 on a finding that the recipe does not waive (`release.waivers`: gate
    `metering`, or `metering:<check>` for one check).

    Examples:

        routeyard audit metering --workspace yard

        routeyard audit metering --workspace yard --recipe my_benchmark.yaml --json

    Args:
        recipe: Recipe whose thresholds, prices and waivers count.
    """
    from routeyard.flows.audits.metering import audit_workspace
    from routeyard.pipelines.metering.findings import SHOWN

    found = audit_workspace(place or workspace, recipe)
    whole = [(f, None) for f in found.unresolved] + [(f, w.reason) for f, w in found.waived]
    rows = [asdict(f) | {"waived": why, "at": found.rows(f, SHOWN)} for f, why in whole]
    lines = []
    for finding in found.unresolved:
        more = ", …" if finding.count > 5 else ""
        lines.append(f"{finding.check}: {finding.model_id}: {finding.count:,} {finding.says}")
        lines.append(f"  rows: {', '.join(found.rows(finding, 5))}{more}")
    lines += [f"{f.check}: {f.model_id}: waived: {w.reason}" for f, w in found.waived]
    if not found.unresolved:
        lines.append("metering: no unresolved finding" if found.waived else "metering: no findings")
    if found.of != "the ledger":
        lines.append(f"looked at: {found.of}")
    return Output(rows, lines, exit_code=3 if found.unresolved else 0)
