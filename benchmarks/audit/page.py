"""The page of audits, `docs/defects.md`: `python -m benchmarks.audit.page` writes the text
between its two marks, from audits of every matrix and result folder in `ROUTEYARD_DATA`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.audit.matrices import QUERIES, data, matrix
from routeyard.datacards.reports.health import whom
from routeyard.flows.audits import audit_path
from routeyard.pipelines.audit.answers import AuditFinding
from routeyard.pipelines.audit.checks import audit_recording, verdict_of
from routeyard.pipelines.common.errors import RouteyardError
from routeyard.schemas.text import markdown as plain

PAGE = Path(__file__).parents[2] / "docs" / "defects.md"
BEGIN, END = "<!-- audits: begin -->", "<!-- audits: end -->"
#: Findings of each kind that are shown.
SHOWN = 2


def audits() -> Iterator[tuple[str, str, str, Sequence[AuditFinding]]]:
    """(name, command, verdict, findings) of every matrix, and of every folder in `shapes`."""
    for name, query in QUERIES.items():
        found = audit_recording(matrix(name))
        files = [part.split("}")[0] for part in query.split("'{")[1:]]
        command = (
            f"routeyard audit {files[0]}.parquet"
            if len(files) == 1
            else (f"python -m benchmarks.audit.page {name}")
        )
        yield name, command, found.verdict, found.findings
    for folder in sorted(path for path in (data() / "shapes").iterdir() if path.is_dir()):
        command = f"routeyard audit shapes/{folder.name}"
        try:
            page = audit_path(folder)
        except RouteyardError as error:
            print(f"{folder.name}: {error}", file=sys.stderr)
            continue
        yield f"shapes/{folder.name}", command, verdict_of(page.findings), page.findings


def rows(name: str, command: str, verdict: str, findings: Sequence[AuditFinding]) -> Iterator[str]:
    """The section of one matrix."""
    yield f"### {name}: {verdict}\n"
    yield f"`{command}`\n"
    told = [one for one in findings if one.severity != "note"]
    if not told:
        yield "Nothing was found.\n"
        return
    yield "| Kind | About | What was found | When mended |\n| --- | --- | --- | --- |"
    for kind in dict.fromkeys(one.kind for one in told):
        own = [one for one in told if one.kind == kind]
        for one in own[:SHOWN]:
            cells = (kind, plain(whom(one.about, one.parts)), plain(one.says), plain(one.effect))
            yield f"| {' | '.join(cells)} |"
        if len(own) > SHOWN:
            yield f"| {kind} | {len(own) - SHOWN:,} more | | |"
    yield ""


def main(names: Sequence[str]) -> None:
    """Write the page; with names, print the sections of these matrices only."""
    if names:
        for name in names:
            found = audit_recording(matrix(name))
            print("\n".join(rows(name, "", found.verdict, found.findings)))
        return
    made = "\n".join(line for one in audits() for line in rows(*one))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{made}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
