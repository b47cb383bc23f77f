"""`README.md` of a release: words from the recipe, every number from the tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from routeyard.datacards.certified import sentences
from routeyard.datacards.cite import bibtex
from routeyard.datacards.front_matter import front_matter, outcome_configs
from routeyard.datacards.losses import causes, sentence
from routeyard.datacards.markdown import environment
from routeyard.datacards.numbers import card_numbers
from routeyard.datacards.sections import (
    image_lines,
    informative_section,
    injected,
    label_choices,
    pool_sources,
    preference_sections,
    recorded_words,
)
from routeyard.schemas import StoredTable
from routeyard.schemas.leaks import group_of, leaked_tests, looked_for_duplicates
from routeyard.schemas.manifest import MEASURED_COLUMNS
from routeyard.schemas.recipe.label import Label
from routeyard.schemas.recipe.release import Release


def render(tables: Mapping[str, pa.Table | StoredTable], facts: Mapping[str, Any]) -> str:
    """The card: front matter for the hub, then Markdown for people.

    Args:
        tables: Released tables in contract form.
        facts: name, version, recipe, sources, waivers, figures, files and
            fingerprints, as `write_release` gives them.
    """
    numbers = card_numbers(tables)
    words = Release.model_validate(facts["recipe"].get("release") or {})
    body = (
        environment()
        .get_template("card.md.j2")
        .render(
            **{**facts, "sources": _sources(facts["sources"], numbers)},
            n=numbers,
            warnings=Label.model_validate(facts["recipe"].get("label") or {}).foreign_prompts,
            errors=(facts.get("figures") or {}).get("label_errors") or {},
            injected=injected(facts.get("figures") or {}),
            preference=preference_sections(facts.get("figures") or {}),
            informative=informative_section(facts.get("figures") or {}),
            # The size of a table with measured times differs between runs that are otherwise equal.
            timed=[name for name, t in tables.items() if MEASURED_COLUMNS & set(t.column_names)],
            release=words.model_dump(),
            label_choices=label_choices(facts["recipe"], numbers, facts.get("figures") or {}),
            pool_sources=pool_sources(facts["recipe"], numbers),
            losses=[sentence(row) for row in causes(tables)],
            images=image_lines(_rows(tables.get("images")), facts["recipe"]),
            looked=looked_for_duplicates(facts["recipe"]),
            leaks=_leaks(tables, facts["recipe"]),
            certificate=(certificate := (facts["figures"].get("certify") or {}).get("certificate")),
            configs=outcome_configs(tables, facts.get("files") or {}),
            sentences=sentences(certificate) if certificate else [],
            zoo=_zoo(words.zoo),
            recorded=recorded_words(facts["recipe"], facts.get("figures") or {}),
            citation=words.citation or bibtex(facts),
        )
    )
    return front_matter(tables, facts) + "\n" + body.strip() + "\n"


def _leaks(
    tables: Mapping[str, pa.Table | StoredTable], recipe: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Rows of the table `leaks`, from the released tables themselves."""
    if "queries" not in tables or "splits" not in tables:
        return []
    groups = None
    if "duplicates" in tables and looked_for_duplicates(recipe):
        groups = group_of(_columns(tables["duplicates"], "query_id", "group_id"))
    splits = _columns(tables["splits"], "scheme", "query_id", "split")
    return leaked_tests(tables["queries"], splits, groups)


def _zoo(text: str | None) -> dict[str, Any] | None:
    """The zoo's rows, best first, with accuracies as text."""
    if text is None:
        return None
    found: dict[str, Any] = json.loads(text)
    rows = sorted(found["rows"], key=lambda row: (-row["mean"], row["router"], row["encoder"]))
    said = [{**row, "accuracy": f"{100 * row['mean']:.2f} ± {100 * row['sd']:.2f}"} for row in rows]
    references = {name: f"{100 * value:.2f}" for name, value in found["references"].items()}
    return {**found, "rows": said, "references": references}


def _rows(table: pa.Table | StoredTable | None) -> list[dict[str, Any]]:
    if table is None:
        return []
    rows: list[dict[str, Any]] = (
        table.read() if isinstance(table, StoredTable) else table
    ).to_pylist()
    return rows


def _columns(table: pa.Table | StoredTable, *names: str) -> pa.Table:
    return table.read(names) if isinstance(table, StoredTable) else table.select(names)


def _sources(
    stated: Sequence[Mapping[str, Any]], numbers: Mapping[str, Any]
) -> list[dict[str, Any]]:
    counted = {row["source"]: row["queries"] for row in numbers["sources"]}
    return [
        {
            "name": source["source"],
            "queries": counted.get(source["source"], 0),
            "license": source.get("license") or "NOASSERTION",
            "withheld": source.get("redistribute_text") is False,
            "where": source.get("url") or source.get("hub_id"),
        }
        for source in stated
    ]
