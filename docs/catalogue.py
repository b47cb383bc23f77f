"""Writes what code knows into the pages of a checkout; run it, and it writes all.

The README of each domain of the catalogue is made from its entries. Tables between the marks
`<!-- NAME: begin -->` and `<!-- NAME: end -->` of other pages are made from registries.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path

from jinja2 import Environment

import routeyard
from routeyard.datacards.card import FIGURES
from routeyard.flows.stages import as_table
from routeyard.pipelines.curate import RULES
from routeyard.pipelines.evaluate.metrics import METRICS
from routeyard.pipelines.evaluate.studies import STUDIES
from routeyard.pipelines.ingest import catalog
from routeyard.pipelines.ingest.catalog import domains, entry
from routeyard.pipelines.ingest.importers import IMPORTERS
from routeyard.pipelines.routers import PAIR_ROUTERS, ROUTERS
from routeyard.pipelines.routers.base import traits_of

ROOT = Path(__file__).parents[1]
#: Where the entries and their pages are.
FOLDER = Path(catalog.__file__).parent
#: Short name of a paper → its name on the page of studies.
PAPERS = {
    "triple-perspective": "RouterXBench",
    "who-routes-the-router": "RouterBench+",
    "confidence-router": "Confidence router",
    "cscr": "CSCR",
    "routing-plateau": "Plateau",
}


def readme(domain: str) -> str:
    """The page of one domain: dataset, licence, citation, evidence and known defects."""
    text = Path(__file__).with_name("catalogue.md.jinja").read_text(encoding="utf-8")
    plain = Environment(trim_blocks=True, keep_trailing_newline=True)  # noqa: S701  (no HTML)
    entries = [entry(name) for name in domains()[domain]]
    title = domain.replace("_", " ").capitalize()
    return plain.from_string(text).render(title=title, entries=entries)


def _first(documented: object) -> str:
    return " ".join((inspect.getdoc(documented) or "").partition("\n\n")[0].split())


def _table(heads: str, rows: Iterable[Iterable[str]]) -> str:
    lines = [f"| {heads} |", "| --- " * (heads.count("|") + 1) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def metrics() -> str:
    rows = []
    for name, one in ((name, METRICS.get(name)) for name in sorted(METRICS.builtin)):
        needs = ", ".join(one.needs) or "–"
        rows.append((f"`{name}`", one.direction, one.unit, one.says, needs, one.source))
    return _table("Metric | Better | Unit | Definition | Needs | Source", rows)


def routers() -> str:
    rows = []
    for registry in (ROUTERS, PAIR_ROUTERS):
        for name, one in (
            (name, traits_of(registry.get(name))) for name in sorted(registry.builtin)
        ):
            needs = ", ".join(one.needs) or "–"
            rows.append((f"`{name}`", one.paper or "–", one.scale, needs, one.cost or "–"))
    return _table("Router | From | Scores | Needs | Cost of a fit", rows)


def importers() -> str:
    found = {name: IMPORTERS.get(name) for name in sorted(IMPORTERS.builtin)}
    rows = ((f"`{name}`", one.title, one.layout) for name, one in found.items())
    return _table("Format | From | Files", (map(_cell, row) for row in rows))


def rules() -> str:
    return _table(
        "Rule | Does",
        ((f"`{name}`", _first(RULES.get(name).apply)) for name in sorted(RULES.builtin)),
    )


def studies() -> str:
    found = [STUDIES.get(name) for name in STUDIES.names()]
    return _table(
        "Paper, item | Shows | Study",
        ((f"{PAPERS[paper]}, {one.item}", one.title, f"`{one.name}`")
         for paper in PAPERS for one in found if one.paper == paper),
    )  # fmt: skip


def names() -> str:
    found = ((f"`{name}`", _cell(_first(getattr(routeyard, name)))) for name in routeyard._WHERE)
    return _table("Name | Is", found)


def certificate() -> str:
    return _table(
        "Figure | Means", ((f"`{name}`", one["sentence"]) for name, one in FIGURES.items())
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


#: Page → mark → what is written there.
BLOCKS: dict[str, dict[str, Callable[[], str]]] = {
    "docs/glossary.md": {"certificate": certificate},
    "docs/python.md": {"names": names},
    "docs/stages/index.md": {"stages": as_table},
    "pipelines/curate/README.md": {"rules": rules},
    "pipelines/evaluate/README.md": {"metrics": metrics},
    "pipelines/evaluate/studies/README.md": {"studies": studies},
    "pipelines/ingest/importers/README.md": {"importers": importers},
    "pipelines/routers/README.md": {"routers": routers},
}


def written(page: str) -> str:
    """A page's text with its tables written anew."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for mark, table in BLOCKS[page].items():
        before, begin, rest = text.partition(f"<!-- {mark}: begin -->")
        _, end, after = rest.partition(f"<!-- {mark}: end -->")
        text = f"{before}{begin}\n{table()}\n{end}{after}"
    return text


def main() -> None:
    """Write every domain's README beside its entries, and every table."""
    for domain in domains():
        path = FOLDER / domain / "README.md"
        path.write_text(readme(domain), encoding="utf-8", newline="\n")
    for page in BLOCKS:
        (ROOT / page).write_text(written(page), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
