"""Which study of the three papers was run on which release, read from the pages themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable

from routeyard.pipelines.evaluate.studies import STUDIES
from routeyard.pipelines.evaluate.studies.study import Study

#: A study's own name of a paper → how the README calls it.
PAPERS = {
    "triple-perspective": "RouterXBench",
    "confidence-router": "Confidence router",
    "cscr": "CSCR",
}
_RUN = re.compile(r"Release `([^`]+)`[^;\n]{0,40}; made by `routeyard study (\w+)`")


def run_on(pages: Iterable[str]) -> dict[str, list[str]]:
    """Study → releases that pages show it on, in the pages' order."""
    found: dict[str, list[str]] = {}
    for page in pages:
        for release, study in _RUN.findall(page):
            if release not in found.setdefault(study, []):
                found[study].append(release)
    return found


def index(pages: Iterable[str]) -> str:
    """A table of the studies of the three papers and what they were run on."""
    found = run_on(pages)
    rows = []
    for name in STUDIES.names():
        study: Study = STUDIES.get(name)
        named = [PAPERS[one] for one in study.paper.split(", ") if one in PAPERS]
        if named:
            on = ", ".join(f"`{one}`" for one in found.get(name, ["–"]))
            rows.append(f"| {' and '.join(named)}, {study.item} | `{name}` | {on} |")
    head = "| paper and item | study | run here on |\n| --- | --- | --- |\n"
    return (
        "## What was run on what\n\n`RESULTS.md` says what the recorded matrices are (`bbh`, "
        "`mmlu_pro`, …); the others are above. Illustrations and lists have no study: README.\n\n"
        + head
        + "\n".join(sorted(rows, key=_natural))
        + "\n"
    )


def _natural(row: str) -> list[str]:
    """Table 2 before Table 10."""
    return [part.zfill(3) if part.isdigit() else part for part in re.split(r"(\d+)", row)]
