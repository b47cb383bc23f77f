"""Writes the README of each domain from its entries; run as a module, it writes all."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment

from routeyard.pipelines.ingest.catalog import domains, entry


def readme(domain: str) -> str:
    """The page of one domain: dataset, licence, citation, evidence and known defects."""
    text = Path(__file__).with_name("domain.md.jinja").read_text(encoding="utf-8")
    plain = Environment(trim_blocks=True, keep_trailing_newline=True)  # noqa: S701  (no HTML)
    entries = [entry(name) for name in domains()[domain]]
    title = domain.replace("_", " ").capitalize()
    return plain.from_string(text).render(title=title, entries=entries)


def main() -> None:
    """Write every domain's README beside its entries."""
    for domain in domains():
        path = Path(__file__).parent / domain / "README.md"
        path.write_text(readme(domain), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
