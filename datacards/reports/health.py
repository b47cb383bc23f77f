"""The health report: one HTML page and one Markdown file from the same sections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from markupsafe import Markup

from routeyard.datacards.charts.draw import PAGE
from routeyard.datacards.markdown import environment, texts
from routeyard.datacards.reports.health_plots import plot_all
from routeyard.datacards.site.language import single_page

#: Rows of a table that the page shows; the Parquet file has all of them.
MOST_ROWS = 200

#: Sections: title, what it says, and its table and plot if it has them.
SECTIONS: list[dict[str, str]] = texts("health.yaml")


@dataclass(frozen=True, slots=True)
class Report:
    """The page, the Markdown text, and the plots it links to by file name."""

    html: str
    markdown: str
    plots: Mapping[str, str]


def health_report(title: str, tables: Mapping[str, pa.Table], facts: Mapping[str, Any]) -> Report:
    """Render the figures of `routeyard.pipelines.curate.health`.

    Names come from outside: they are escaped in both forms, and the page's
    content security policy allows no request and no script but the page's own.
    """
    plots, drawn = plot_all(tables), plot_all(tables, PAGE)
    sections = [
        _section(one, tables, drawn)
        for one in SECTIONS
        if one.get("table") in tables or one.get("plot") in plots
    ]
    figures, notes = _figures(facts), _notes(facts)
    shown = {"figures": figures, "notes": notes, "sections": sections}
    html = single_page("health.html.jinja", "site.js", title=f"{title}: health", **shown)
    return Report(html + "\n", markdown_of(title=f"{title}: health", **shown), plots)


def _section(
    about: Mapping[str, str], tables: Mapping[str, pa.Table], plots: Mapping[str, str]
) -> dict[str, Any]:
    rows, drawn = tables.get(about.get("table", "")), plots.get(about.get("plot", ""))
    shown = [] if rows is None else rows[:MOST_ROWS].to_pylist()
    return {
        **about,
        "plot_name": about["plot"] if drawn is not None else None,
        "plot": None if drawn is None else Markup(drawn),  # noqa: S704  escaped by `draw`
        "columns": [] if rows is None else _columns(rows),
        "rows": [[_cell(value) for value in row.values()] for row in shown],
        "left_out": 0 if rows is None else max(0, len(rows) - MOST_ROWS),
        "file": f"{about.get('table')}.parquet",
    }


def _columns(table: pa.Table) -> list[dict[str, Any]]:
    return [
        {
            "name": field.name.replace("_", " "),
            "number": pa.types.is_floating(field.type) or pa.types.is_integer(field.type),
            "words": False,
        }
        for field in table.schema
    ]


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e-3 and value else f"{value:.4f}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def _figures(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    coverage = facts["coverage"]
    shown = [
        ("questions", _cell(facts["queries"])),
        ("tasks", _cell(facts["tasks"])),
        ("models", _cell(facts["models"])),
        ("labels", _cell(facts["labels"])),
        ("coverage", "–" if coverage is None else f"{coverage:.1%}"),
        ("groups of near-duplicates", _looked(facts["duplicate_groups"])),
        ("of them with conflicting labels", _looked(facts["conflicting_groups"])),
    ]
    if facts["pseudo_specialists"]:
        shown.append(("pseudo-specialists, not counted", _cell(facts["pseudo_specialists"])))
    return shown


def _looked(count: int | None) -> str:
    return "not looked for" if count is None else _cell(count)


def _notes(facts: Mapping[str, Any]) -> list[str]:
    notes = []
    if facts["unlimited_budget"]:
        notes.append("No model has a cost: specialist scores use one unlimited budget.")
    else:
        notes.append(
            f"Specialist scores are means over {facts['budgets']} cost budgets; "
            f"{facts['skipped_budgets']} with a single affordable model were skipped."
        )
    if facts["models_without_cost"]:
        named = ", ".join(facts["models_without_cost"][:10])
        notes.append(
            f"{len(facts['models_without_cost'])} model(s) have no cost and are left out of "
            f"budgeted measures: {named}."
        )
    if facts["generalists"]:
        notes.append("Generalists: " + ", ".join(facts["generalists"][:20]) + ".")
    if facts["encoder"]:
        notes.append(f"Embeddings: {facts['encoder']}.")
    notes += [f"Not measured: {what}." for what in facts["not_measured"]]
    return notes


def markdown_of(**content: Any) -> str:
    """A report's sections as Markdown; texts from outside are escaped."""
    return environment().get_template("health.md.j2").render(**content).rstrip() + "\n"
