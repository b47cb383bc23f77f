"""Every section, table, figure and equation that the code cites of the five papers exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipelines.citations import PAPERS, Paper

ROOT = Path(__file__).parent.parent
PLACE = re.compile(
    r"\b(sections?|appendix|appendices|tables?|figures?|equations?)\s+"
    r"((?:[A-Z]|\d+)(?:\.\d+)*)(?![\w.]*\w)",
    re.IGNORECASE,
)


def cited(text: str) -> list[tuple[str, str, str]]:
    """(paper, kind, number) of places named within 160 characters after a paper's name."""
    flat = re.sub(r"[\s#\"]+", " ", text)
    names = {name: paper for paper, one in PAPERS.items() for name in one.names}
    every = re.compile("|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)))
    found = []
    hits = list(every.finditer(flat))
    for at, hit in enumerate(hits):
        if flat[hit.end() : hit.end() + 1] == ")" and flat[hit.start() - 1] == "(":
            continue  # "Table 6 (CSCR), Table 8 (…)": the place stands before the name
        end = min(hit.end() + 160, hits[at + 1].start() if at + 1 < len(hits) else len(flat))
        # A sentence about another paper, or its arXiv number, ends what this name covers.
        part = re.split(r"(?<=[a-z)])\. |; |RouteLLM|Universal Model", flat[hit.end() : end])[0]
        for kind, number in PLACE.findall(part):
            found.append((names[hit.group()], kind.lower().rstrip("s"), number))
    return found


def known(paper: Paper, kind: str, number: str) -> bool:
    if kind.startswith(("section", "append")):
        return number in paper.sections
    limit = {"table": paper.tables, "figure": paper.figures, "equation": paper.equations}[kind]
    return number.isdigit() and 1 <= int(number) <= limit


def files() -> list[Path]:
    folders = ("pipelines", "schemas", "flows", "datacards")
    return [p for f in folders for s in ("*.py", "*.md") for p in sorted((ROOT / f).rglob(s))]


def test_every_cited_place_exists() -> None:
    wrong, total = [], 0
    for path in files():
        for paper, kind, number in cited(path.read_text(encoding="utf-8")):
            total += 1
            if not known(PAPERS[paper], kind, number):
                wrong.append(f"{path.relative_to(ROOT)}: {paper}, {kind} {number}")
    assert not wrong, "no such place in the paper (pipelines/citations.py):\n" + "\n".join(wrong)
    # The search itself must find what there is.
    assert total > 30


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("RouterXBench, section 3.3", True), ("RouterXBench, section 8.1", False),
        ("CSCR, appendix D.5.2 and Table 15", True), ("CSCR, Table 17", False),
    ],
)  # fmt: skip
def test_a_wrong_number_is_found(text: str, right: bool) -> None:
    assert all(known(PAPERS[p], kind, number) for p, kind, number in cited(text)) is right
    assert cited(text)
