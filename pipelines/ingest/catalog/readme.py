"""Writes the README of each domain from its entries; run as a module, it writes all."""

from __future__ import annotations

from pathlib import Path

from routeyard.pipelines.ingest.catalog import Entry, domains, entry

HEAD = """\
# {title}

Made from the entries by `python -m routeyard.pipelines.ingest.catalog.readme`; change them, not
this page. Licences are as the dataset's own card states them; `NOASSERTION` where it states none or
was not seen. Cite the dataset, not this catalog.
"""


def readme(domain: str) -> str:
    """The page of one domain: dataset, licence, citation, evidence and known defects."""
    head = HEAD.format(title=domain.replace("_", " ").capitalize())
    return "\n".join([head, *(_section(entry(name)) for name in domains()[domain])])


def _section(one: Entry) -> str:
    source = one.source
    place = f"[{source.hub_id}]({source.url})" if source.hub_id else f"a file: `{source.path}`"
    doubt = ", ".join(f"`{name}`" for name in one.unconfirmed)
    lines = [
        f"## {one.name}",
        "",
        f"- dataset: {place}"
        + (f", config `{_short(source.config)}`" if source.config else "")
        + (f", split `{source.split}`" if source.hub_id else ""),
        f"- scorer: `{source.scorer}`; licence: {source.license}",
        f"- cite: {one.citation}",
        f"- columns from: {one.evidence}" + (f"; unconfirmed: {doubt}" if doubt else ""),
        *(f"- known defect: {defect}" for defect in one.defects),
        "",
    ]
    return "\n".join(lines)


def _short(config: str) -> str:
    parts = config.split("|")
    return config if len(parts) < 6 else f"{parts[0]}|…|{parts[-1]}"


def main() -> None:
    """Write every domain's README beside its entries."""
    for domain in domains():
        path = Path(__file__).parent / domain / "README.md"
        path.write_text(readme(domain), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
