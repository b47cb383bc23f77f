"""Writes the README of each domain of the catalogue from its entries; run it, and it writes all."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment

from routeyard.pipelines.ingest import catalog
from routeyard.pipelines.ingest.catalog import domains, entry

#: Where the entries and their pages are.
FOLDER = Path(catalog.__file__).parent


def readme(domain: str) -> str:
    """The page of one domain: dataset, licence, citation, evidence and known defects."""
    text = Path(__file__).with_name("catalogue.md.jinja").read_text(encoding="utf-8")
    plain = Environment(trim_blocks=True, keep_trailing_newline=True)  # noqa: S701  (no HTML)
    entries = [entry(name) for name in domains()[domain]]
    title = domain.replace("_", " ").capitalize()
    return plain.from_string(text).render(title=title, entries=entries)


def main() -> None:
    """Write every domain's README beside its entries."""
    for domain in domains():
        path = FOLDER / domain / "README.md"
        path.write_text(readme(domain), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
