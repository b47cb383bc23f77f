"""Writes the site: an index, and four pages and shards for every release."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment

from routeyard.datacards.card import VERDICTS, bibtex, pool_sources, recorded_words, sentences
from routeyard.datacards.charts import (
    MOST_CELLS,
    PAGE,
    accuracy_bars,
    agreement,
    bars,
    cost_accuracy,
    heatmap,
)
from routeyard.datacards.site import evaluation
from routeyard.datacards.site import release as figures
from routeyard.datacards.site.evaluation import cheapest_words, headline
from routeyard.datacards.site.language import page_environment
from routeyard.datacards.site.release import SiteRelease
from routeyard.datacards.site.shards import write_shards
from routeyard.schemas import CONTRACTS

# What is doubtful about a release, each with the questions behind it.

#: Characters of a finding that are shown.
LONGEST = 400


def doubts(book: SiteRelease) -> list[dict[str, Any]]:
    """Sentences with counts, and where on the site their questions are; none where all is well."""
    counts = figures.counts(book)
    words = "verdicts disagree, or the text commits to several answers"
    counted = [
        (counts["contested"], f"label is contested: {words}", f"labels are contested: {words}",
         "questions.html#contested=1"),
        (counts["pairs"] - counts["labelled"], "pair has no label",
         "pairs have no label, and are neither right nor wrong", "questions.html#missing=1"),
        (counts["unreadable"], "answer could not be read, and is wrong",
         "answers could not be read, and are wrong", "#labels"),
        (counts["pairs"] - counts["priced"], "pair has no known cost",
         "pairs have no known cost, and are not free", None),
        *((row["conflicts"], "group of near-duplicates has labels that disagree",
           "groups of near-duplicates have labels that disagree", "questions.html#duplicates=1")
          for row in figures.duplicates(book)),
    ]  # fmt: skip
    results: list[dict[str, Any]] = [
        {"says": f"{n:,} {item if n == 1 else many}", "link": link}
        for n, item, many, link in counted
        if n
    ]
    certificate = book.certificate or {}
    if certificate.get("verdict") not in (None, "routable"):
        says = f"The certificate's verdict is: {certificate['verdict']}"
        results.append({"says": says, "link": "#certificate"})
    audited = book.manifest.figures.get("audit") or {}
    for finding in (*audited.get("defects", ()), *audited.get("defects_waived", ())):
        kind, _, says = str(finding).removeprefix("audit:").partition(": ")
        words = f"Audit, {kind.replace('_', ' ')}: {says}"
        results.append(
            {"says": words if len(words) <= LONGEST else f"{words[:LONGEST]}…", "link": None}
        )
    recipe = book.manifest.recipe.get("release") or {}
    issues = [str(issue) for issue in recipe.get("known_issues") or ()]
    issues += [f"The gate {item.gate} was waived: {item.reason}" for item in book.manifest.waivers]
    return [*results, *({"says": item, "link": "data.html#changes"} for item in issues)]


CHARTS = ("accuracy", "cost", "heatmap", "specialists", "likeness")


def release_page_content(book: SiteRelease) -> dict[str, Any]:
    """What `release.html.jinja` shows."""
    models = figures.models(book)
    tasks, cells = figures.tasks(book)
    removed, first = figures.removals(book)
    first = first if book.texts else []
    evaluated = book.evaluations[0] if book.evaluations else None
    simulated = any(row["simulated"] for row in models)
    return {
        "answer": headline(evaluated, models, simulated=simulated),
        "cheapest": cheapest_words(evaluated, simulated=simulated) if evaluated else None,
        "simulated": simulated,
        "recorded": (book.manifest.recipe.get("collect") or {}).get("provider") == "recorded",
        "kinds": any(row["simulated"] or row["kind"] != "real" for row in models),
        "verdicts": VERDICTS,
        "counts": figures.counts(book),
        "models": models,
        "tasks": tasks,
        "budgeted": any(row["budgeted"] for row in figures.of_health(book, "facts")),
        "duplicates": figures.duplicates(book),
        "looked": any(r.get("rule") == "dedup" for r in book.manifest.recipe.get("curate") or ()),
        "removed": removed,
        "removals": first,
        "decided": figures.decided(book),
        "pool_sources": pool_sources(book.manifest.recipe, {"prices": figures.prices(book)}),
        "certificate": book.certificate,
        "doubts": doubts(book),
        "sentences": sentences(book.certificate) if book.certificate else [],
        "charts": _charts(book, models, tasks, cells),
    }


def _charts(
    book: SiteRelease,
    models: list[dict[str, Any]],
    tasks: list[dict[str, Any]],
    cells: list[dict[str, Any]],
) -> dict[str, str | None]:
    """SVG by name; a picture that there is nothing for is None, and the page says so."""
    charts: dict[str, str | None] = dict.fromkeys(CHARTS)
    pool = [row["model_id"] for row in models]
    labelled = [row for row in models if row["accuracy"] is not None]
    if labelled:
        charts["accuracy"] = accuracy_bars(labelled, pool=pool, look=PAGE)
    priced = [row for row in labelled if row["cost"]]
    if len(priced) > 1:
        simulated = any(row["simulated"] for row in models)
        charts["cost"] = cost_accuracy(priced, pool=pool, simulated=simulated, look=PAGE)
    if labelled and len(labelled) * len(tasks) <= MOST_CELLS:
        charts["heatmap"] = heatmap(
            [(c["model_id"], c["task"], c["accuracy"]) for c in cells],
            name="tasks", title="Accuracy of every model on every task",
            rows=[row["model_id"] for row in labelled], columns=[row["task"] for row in tasks],
            value="accuracy", of=("model", "task"), look=PAGE,
            link=lambda model, task: urlencode({"task": task, "a": model, "show": "a-wrong"}),
        )  # fmt: skip
    scored = [
        {"name": row["task"], "value": 100 * row["specialist_score"]}
        for row in sorted(tasks, key=lambda row: -(row["specialist_score"] or 0))
        if row["specialist_score"] is not None
    ]
    if scored:
        charts["specialists"] = bars(
            scored, name="specialists", title="Specialist score of every task", of="task",
            value="specialist score (percentage points above the generalist)", form="+.1f",
            dots=True, look=PAGE,
        )  # fmt: skip
    alike = figures.of_health(book, "jaccard")
    rows = figures.of_health(book, "models")
    return charts | {"likeness": agreement(alike, rows, name="likeness", look=PAGE)}


# Content of the data page: every column, saved SQL, sources and licences, how to cite.


def data_page_content(book: SiteRelease) -> dict[str, Any]:
    """What `data.html.jinja` shows."""
    manifest = book.manifest
    words = manifest.recipe.get("release") or {}
    tables = []
    for name, entry in manifest.tables.items():
        contract = CONTRACTS.get(name)
        tables.append(
            {
                "name": name,
                "rows": entry.rows,
                "file": entry.file,
                "says": contract.description if contract else "",
                "key": ", ".join(contract.key) if contract else "",
                "columns": contract.columns if contract else (),
            }
        )
    return {
        "tables": tables,
        "recorded": recorded_words(manifest.recipe, manifest.figures),
        "saved": book.saved,
        "sources": manifest.sources,
        "license": words.get("license") or "NOASSERTION",
        "citation": words.get("citation") or bibtex(manifest.model_dump(mode="json")),
        "known_issues": words.get("known_issues") or [],
        "waivers": [waiver.model_dump() for waiver in manifest.waivers],
    }


# Content of the routers page: evaluations, the certificate's routers, zoo and studies.


def router_page_content(book: SiteRelease) -> dict[str, Any]:
    """What `routers.html.jinja` shows."""
    rows = book.rows("SELECT model_id, simulated FROM models ORDER BY 1")
    models, simulated = [row["model_id"] for row in rows], any(row["simulated"] for row in rows)
    return {
        "evaluations": [
            evaluation.content(item, f"e{k}", models, simulated=simulated)
            for k, item in enumerate(book.evaluations)
        ],
        "certificate": book.certificate or {},
        "beside": book.reports,
    }


#: Pages of a release: file → (title, template).
PAGES = {
    "index.html": ("Release", "release.html.jinja"),
    "routers.html": ("Routers", "routers.html.jinja"),
    "questions.html": ("Questions", "questions.html.jinja"),
    "data.html": ("Data", "data.html.jinja"),
}
_ASSETS = ("site.css", "site.js", "questions.js")


def write_site(books: Sequence[SiteRelease], out: Path) -> Path:
    """Write the pages of `books` into the folder `out`; returns its `index.html`.

    The same releases give the same bytes. Other files in `out` are left alone.
    """
    out.mkdir(parents=True, exist_ok=True)
    assets = files("routeyard.datacards").joinpath("templates", "site")
    for name in _ASSETS:
        (out / name).write_text(assets.joinpath(name).read_text(encoding="utf-8"), "utf-8")
    environment = page_environment(tuple(PAGES.items()))
    for book in books:
        write_release(book, out / book.folder, environment)
    shown: dict[str, list[dict[str, Any]]] = {}
    for book in sorted(books, key=_version, reverse=True):
        shown.setdefault(book.manifest.name, []).append(_entry(book))
    page = environment.get_template("index.html.jinja").render(
        root="", book=None, title="LLM-routing benchmarks", benchmarks=dict(sorted(shown.items()))
    )
    index = out / "index.html"
    index.write_text(page + "\n", encoding="utf-8")
    return index


def write_release(book: SiteRelease, folder: Path, environment: Environment) -> None:
    """The pages and shards of one release."""
    shards = folder / "shards"
    if shards.exists():  # a former site of the release may have had more of them
        shutil.rmtree(shards)
    folder.mkdir(parents=True, exist_ok=True)
    content: dict[str, Mapping[str, Any]] = {
        "index.html": release_page_content(book),
        "routers.html": router_page_content(book),
        "data.html": data_page_content(book),
    }
    if book.texts:
        content["questions.html"] = {
            "meta": write_shards(book, shards),
            "recorded": recorded_words(book.manifest.recipe, book.manifest.figures),
        }
    for name, (title, shown) in PAGES.items():
        template = shown if name in content else "no_texts.html.jinja"
        page = environment.get_template(template).render(
            root="../../", book=book, here=name, title=title, **content.get(name, {})
        )
        (folder / name).write_text(page + "\n", encoding="utf-8")


def _version(book: SiteRelease) -> tuple[int, ...]:
    parts = book.manifest.version.split(".")
    return tuple(int(part) for part in parts) if all(p.isdigit() for p in parts) else (0,)


def _entry(book: SiteRelease) -> dict[str, Any]:
    rows = {name: entry.rows for name, entry in book.manifest.tables.items()}
    certificate = book.certificate or {}
    return {
        "book": book,
        "rows": rows,
        "verdict": certificate.get("verdict"),
        "words": certificate.get("words"),
        "contested": figures.contested(book),
    }
