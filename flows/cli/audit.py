"""`routeyard audit PATH`: what is wrong with results, a release or a submission."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routeyard.flows.cli.options import OptionalWrittenPath
from routeyard.flows.cli.results import Output
from routeyard.schemas.untrusted_text import in_line

if TYPE_CHECKING:
    from routeyard.flows.audits.page import AuditPage


def command(
    path: Path,
    release: Annotated[Path | None, typer.Option()] = None,
    beside: Annotated[Path | None, typer.Option()] = None,
    show: Annotated[int, typer.Option(min=0)] = 5,
    out: OptionalWrittenPath = None,
) -> Output:
    """Find what is wrong with anybody's results, and what it does to the leaderboard.

    Takes a file or a folder of results in any layout, a release, or a submission of
    choices (with the release it was made for). One verdict: `clean`, `doubtful` or
    `defective`. Findings come in the order of what mending them changes: pairs of arms
    that change places first. Each names its rows, and the recipe key that mends it.

    Exits 3 when the verdict is `defective`.

    Examples:

        routeyard audit results.csv

        routeyard audit logs/ --json

        routeyard audit yard/releases/demo/1.0.0 --out findings

        routeyard audit choices.csv --release yard/releases/demo/1.0.0

    Args:
        path: File or folder of results, release, or table of choices.
        release: The release that a submission was made for.
        beside: An earlier submission of the same team, to compare with.
        show: Findings of each kind to print; --json and --out have all.
        out: Folder for the page (`audit.html`, `audit.md`) and `audit.json`.
    """
    from routeyard.flows.audits.anything import audit_path, write_page

    found = audit_path(path, release=release, beside=beside)
    if out is not None:
        write_page(found, out)
    return Output(
        found.data,
        map(in_line, _lines(found, show)),
        exit_code=3 if found.verdict == "defective" else 0,
    )


def _lines(found: AuditPage, show: int) -> Iterator[str]:
    from routeyard.datacards.reports.audit import whom

    looked_at = ", ".join(f"{count:,} {name}" for name, count in found.looked_at.items())
    yield f"{found.title}: {found.verdict}"
    yield f"looked at {found.of}: {looked_at}" if looked_at else f"looked at {found.of}"
    yield from (f"note: {note}" for note in found.notes)
    kinds = Counter(one.kind for one in found.findings)
    shown: Counter[str] = Counter()
    for one in found.findings:
        shown[one.kind] += 1
        if shown[one.kind] > show:
            continue
        yield f"{one.severity}: {one.kind}: {whom(one.about, one.parts)}"
        yield f"  {one.says}"
        yield f"  when mended: {one.effect}; mend with {one.key}"
        if one.rows:
            yield f"  rows: {'; '.join(_row(row) for row in one.rows[:3])}"
        if shown[one.kind] == show < kinds[one.kind]:
            yield f"  … and {kinds[one.kind] - show:,} more of this kind (--show N, or --json)"
    if not found.findings:
        yield "nothing was found"
    if found.not_checked:
        lacking = ", ".join(f"{name} ({column})" for name, column in found.not_checked.items())
        yield f"not checked, as the source lacks a column: {lacking}"


def _row(row: dict[str, object]) -> str:
    return str(row.get("at") or ", ".join(f"{k} {v}" for k, v in row.items()))
