"""Writes the site: an index, and four pages and shards for every release."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment

from routeyard.datacards.card import bibtex, recorded_words
from routeyard.datacards.site import evaluation, release_page
from routeyard.datacards.site.language import page_environment
from routeyard.datacards.site.release import SiteRelease, contested
from routeyard.datacards.site.shards import write_shards
from routeyard.schemas import CONTRACTS

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
            evaluation.content(one, f"e{k}", models, simulated=simulated)
            for k, one in enumerate(book.evaluations)
        ],
        "certificate": book.certificate or {},
        "beside": book.beside,
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
    environment = page_environment()
    environment.globals["pages"] = PAGES
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
        "index.html": release_page.content(book),
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
        "contested": contested(book),
    }
