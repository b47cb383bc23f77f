"""Every table and figure of the five papers has its line, and every study stands in one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.methods.index import run_on
from routeyard.pipelines.evaluate.studies import STUDIES
from routeyard.pipelines.evaluate.studies.study import Study

PAGE = Path(__file__).parents[2] / "pipelines/evaluate/studies/README.md"
#: Paper as the page calls it → (its tables, its figures), counted in the papers; its short name.
PAPERS = {
    "RouterXBench": (6, 6, "triple-perspective"),
    "RouterBench+": (7, 14, "who-routes-the-router"),
    "Confidence router": (2, 2, "confidence-router"),
    "CSCR": (16, 7, "cscr"),
    "Plateau": (13, 9, "routing-plateau"),
}


def items(text: str) -> set[tuple[str, int]]:
    """`Tables 8 to 10, Figure 7` as pairs of kind and number."""
    found = set()
    for kind, numbers in re.findall(r"(Table|Figure)s? ([\d, to]+)", text):
        for one in numbers.split(","):
            low, _, high = one.strip().partition(" to ")
            if low:
                found |= {(kind, k) for k in range(int(low), int(high or low) + 1)}
    return found


def lines() -> list[tuple[str, set[tuple[str, int]], str]]:
    """(paper, items, state) of each line."""
    found = []
    for row in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if row.startswith("|") and len(cells) == 3 and cells[0].partition(",")[0] in PAPERS:
            found.append((cells[0].partition(",")[0], items(cells[0]), cells[2]))
    return found


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_and_figure_has_a_line(paper: str) -> None:
    tables, figures, _ = PAPERS[paper]
    wanted = {("Table", k + 1) for k in range(tables)} | {("Figure", k + 1) for k in range(figures)}
    assert set().union(*(which for name, which, _ in lines() if name == paper)) == wanted


@pytest.mark.parametrize("name", STUDIES.names())
def test_every_study_stands_in_the_line_of_its_items(name: str) -> None:
    study: Study = STUDIES.get(name)
    page = PAGE.read_text(encoding="utf-8")
    assert f"`{name}`" in page, f"add a row with `{name}` to pipelines/evaluate/studies/README.md"
    own = items(study.item)
    papers = [p for p, (_, _, short) in PAPERS.items() if short == study.paper]
    if papers and own:
        named = [which for p, which, state in lines() if p == papers[0] and f"`{name}`" in state]
        assert own <= set().union(*named), (
            f"{name} is of {study.item}: name it in the row of each in evaluate/studies/README.md"
        )


@pytest.mark.extensions
@pytest.mark.parametrize("paper", ["RouterXBench", "Confidence router", "CSCR"])
def test_every_study_of_a_papers_own_router_was_run_and_a_page_says_on_what(paper: str) -> None:
    short = PAPERS[paper][2]
    mine = [name for name in STUDIES.names() if short in STUDIES.get(name).paper]
    pages = [(PAGE.parent / name).read_text("utf-8") for name in ("METHODS.md", "RESULTS.md")]
    found = run_on(pages)
    assert [name for name in mine if name not in found] == []
    # The overview of the first page says the same.
    rows = [row for row in pages[0].splitlines() if f"{paper}, " in row and "| `" in row]
    assert {re.findall(r"`(\w+)` \|", row)[0] for row in rows} == set(mine)
