"""Every section, table, figure and equation that the code cites of the five papers exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from routeyard.pipelines.evaluate.studies import STUDIES
from tests.citations import PAPERS, Paper

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
        # The same paper's arXiv number behind its name does not end what the name covers.
        other = (one.start() for one in hits[at + 1 :] if names[one.group()] != names[hit.group()])
        end = min(hit.end() + 160, next(other, len(flat)))
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
    folders = ("pipelines", "papers", "schemas", "flows", "datacards")
    return [p for f in folders for s in ("*.py", "*.md") for p in sorted((ROOT / f).rglob(s))]


def test_every_cited_place_exists() -> None:
    wrong, total = [], 0
    for path in files():
        for paper, kind, number in cited(path.read_text(encoding="utf-8")):
            total += 1
            if not known(PAPERS[paper], kind, number):
                wrong.append(f"{path.relative_to(ROOT)}: {paper}, {kind} {number}")
    assert not wrong, "no such place in the paper (tests/citations.py):\n" + "\n".join(wrong)
    # The search itself must find what there is.
    assert total > 30


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("RouterXBench, section 3.3", True), ("RouterXBench, section 8.1", False),
        ("CSCR, appendix D.5.2 and Table 15", True), ("CSCR, Table 17", False),
        ("the routing plateau (arXiv 2606.07587), section 8.2 and Table 5", False),
        ("the routing plateau (arXiv 2606.07587), section 5.2 and Table 5", True),
    ],
)  # fmt: skip
def test_a_wrong_number_is_found(text: str, right: bool) -> None:
    assert all(known(PAPERS[p], kind, number) for p, kind, number in cited(text)) is right
    assert cited(text)


#: How `pipelines/evaluate/studies` call the papers.
STUDIED = {
    "routing-plateau": "routing plateau", "who-routes-the-router": "RouterBench+", "cscr": "CSCR",
    "confidence-router": "confidence-driven router", "triple-perspective": "RouterXBench",
}  # fmt: skip
#: Recipe → the paper whose places its comments and differences name.
RECIPES = {
    "nine_by_30k": "routing plateau", "nine_by_300k": "routing plateau",
    "routerbench_plus": "RouterBench+", "confidence_pairs": "confidence-driven router",
    "cscr": "CSCR", "triple_perspective": "RouterXBench",
}  # fmt: skip
#: A paper by arXiv number, or by authors and year.
OTHER = re.compile(
    r"arXiv[ :]*(\d{4}\.\d{5})|[A-Z]\w+(?: et al\.,?|,? (?:and|&) [A-Z]\w+)? \(?(?:19|20)\d\d\b"
)


def test_studies_and_recipes_name_places_of_their_paper() -> None:
    wrong, total = [], 0
    for name in STUDIES.targets:
        study = STUDIES.get(name)
        named = [one.strip() for one in study.paper.split(",")]
        # A study of our own names no place of a paper: `papers` is empty, and any place is wrong.
        papers = [PAPERS[STUDIED[one]] for one in named if one != "routeyard"]
        for kind, number in PLACE.findall(study.item):
            total += 1
            if not any(known(one, kind.lower().rstrip("s"), number) for one in papers):
                wrong.append(f"study {name}: {kind} {number}")
    for name, paper in RECIPES.items():
        text = (ROOT / "flows" / "recipes" / f"{name}.yaml").read_text(encoding="utf-8")
        for kind, number in PLACE.findall(text):
            total += 1
            if not known(PAPERS[paper], kind.lower().rstrip("s"), number):
                wrong.append(f"recipe {name}: {kind} {number}")
    assert not wrong, "\n".join(wrong)
    assert total > 40


def unchecked(text: str) -> list[str]:
    """Places said to stand in a paper that is not in the index."""
    flat = re.sub(r"[\s#\"]+", " ", text)
    ours = {name for paper in PAPERS.values() for name in paper.names}
    found = []
    for hit in PLACE.finditer(flat):
        if not re.fullmatch(r"[\d.]+|[A-Z](\.\d+)*", hit[2]):
            continue
        before = flat[max(0, hit.start() - 110) : hit.start()]
        before = re.split(r"(?<=[a-z)])\. (?=[A-Z])|; | \| ", before)[-1]
        named = list(OTHER.finditer(before))
        at = max((before.rfind(name) for name in ours), default=-1)
        if named and named[-1].start() > at and f"arXiv {named[-1][1]}" not in ours:
            found.append(f"{named[-1][0]} … {hit[0]}")
    return found


def test_no_number_is_cited_of_a_paper_that_nobody_here_can_check() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {one}"
        for path in files()
        for one in unchecked(path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "name the paper without a number, or index it:\n" + "\n".join(wrong)
    assert unchecked("Kuhn et al. 2023, Semantic Uncertainty, Algorithm 2, equation 4")
    assert unchecked("RouteLLM (arXiv 2406.18665), section 4.2")
    assert not unchecked("the routing plateau (arXiv 2606.07587), section 5.2")
