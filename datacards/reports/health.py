"""The health report: one HTML page and one Markdown file from the same sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from markupsafe import Markup

from datacards.charts.draw import PAGE
from datacards.reports.health_plots import plot_all
from schemas.untrusted_text import one_line

#: Rows of a table that the page shows; all of them stand in the Parquet file.
MOST_ROWS = 200

#: (table, plot, title, what it says), in the order of the page.
SECTIONS: tuple[tuple[str | None, str | None, str, str], ...] = (
    (
        "tasks", "specialist_scores", "Tasks: do they need a specialist?",
        "Specialist score: mean over cost budgets of the best other model's accuracy minus the "
        "generalist's, the model with the best overall accuracy within the budget. At or below "
        "zero no model beats the generalist on the task.",
    ),
    (
        None, "task_similarity", "Tasks: are any redundant?",
        "Cosine of the tasks' mean question embeddings; tasks near 1 ask much the same.",
    ),
    (
        "models", None, "Pool: does one model dominate?",
        "Mean rank over tasks (1 is best) and tasks won. Cost is the mean metered USD per "
        "response, or the sum of list prices where nothing was metered.",
    ),
    (
        None, "jaccard", "Pool: which models are alike?",
        "Questions both get right, as a share of those either gets right, over questions both "
        "answered; ordered by clustering.",
    ),
    (
        "pruning_order", None, "Pool: order of greedy pruning",
        "The lowest λ·accuracy − (1−λ)·mean similarity goes first.",
    ),
    (
        "duplicates_by_source", "duplicates", "Near-duplicates by source",
        "Questions that stand in a group of near-duplicates; groups across sources; groups in "
        "which some model is right on one member and wrong on another.",
    ),
    (
        "duplicates_across_splits", None, "Near-duplicates across splits",
        "Groups with members in more than one split of a scheme; each one leaks.",
    ),
    (
        "test_in_train", None, "Test questions that also stand in train",
        "Test questions of a scheme with the words of a train question, whatever the case and the "
        "space; and those in a group of near-duplicates with one (– when nobody looked).",
    ),
    (
        None, "difficulty", "Difficulty of questions",
        "Share of models that are wrong, per question, over the models with a label.",
    ),
    (
        None, "coverage", "Coverage",
        "Share of a task's questions for which a model has a decided label.",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Report:
    """The page, the Markdown text, and the plots it links to by file name."""

    html: str
    markdown: str
    plots: Mapping[str, str]


def health_report(title: str, tables: Mapping[str, pa.Table], facts: Mapping[str, Any]) -> Report:
    """Render the figures of `pipelines.curate.health`.

    Names come from outside: they are escaped in both forms, and the page's
    content security policy allows no request and no script but the page's own.
    """
    from datacards.site.language import inline, page_environment

    plots, drawn = plot_all(tables), plot_all(tables, PAGE)
    sections = [
        _section(table, plot, heading, says, tables, drawn)
        for table, plot, heading, says in SECTIONS
        if (table in tables) or (plot in plots)
    ]
    figures, notes = _figures(facts), _notes(facts)
    html = (
        page_environment()
        .get_template("health.html.jinja")
        .render(
            **inline("site.js"),
            title=f"{title}: health",
            figures=figures,
            notes=notes,
            sections=sections,
        )
    )
    return Report(html + "\n", _markdown(title, figures, notes, sections), plots)


def _section(
    table: str | None,
    plot: str | None,
    heading: str,
    says: str,
    tables: Mapping[str, pa.Table],
    plots: Mapping[str, str],
) -> dict[str, Any]:
    rows = tables.get(table) if table is not None else None
    drawn = plots.get(plot) if plot is not None else None
    return {
        "title": heading,
        "says": says,
        "plot_name": plot if drawn is not None else None,
        "plot": None if drawn is None else Markup(drawn),  # noqa: S704  escaped by `draw`
        "columns": [] if rows is None else _columns(rows),
        "rows": []
        if rows is None
        else [[_cell(value) for value in row.values()] for row in rows[:MOST_ROWS].to_pylist()],
        "left_out": 0 if rows is None else max(0, len(rows) - MOST_ROWS),
        "file": f"{table}.parquet",
    }


def _columns(table: pa.Table) -> list[dict[str, Any]]:
    return [
        {
            "name": field.name.replace("_", " "),
            "number": pa.types.is_floating(field.type) or pa.types.is_integer(field.type),
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


def _markdown(
    title: str,
    figures: Sequence[tuple[str, str]],
    notes: Sequence[str],
    sections: Sequence[Mapping[str, Any]],
) -> str:
    lines = [f"# {_plain(title)}: health", ""]
    lines += [f"- {name}: {value}" for name, value in figures]
    lines += ["", *(_plain(note) + "\n" for note in notes)]
    for section in sections:
        lines += [f"## {section['title']}", "", section["says"], ""]
        if section["plot_name"]:
            lines += [f"![{section['title']}](plots/{section['plot_name']}.svg)", ""]
        if section["rows"]:
            columns = section["columns"]
            lines.append("| " + " | ".join(column["name"] for column in columns) + " |")
            lines.append("| " + " | ".join("--:" if c["number"] else ":--" for c in columns) + " |")
            lines += ["| " + " | ".join(_plain(c) for c in row) + " |" for row in section["rows"]]
            lines.append("")
        if section["left_out"]:
            lines += [f"{section['left_out']} further rows stand in {section['file']}.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _plain(text: str) -> str:
    """Text from outside as Markdown text: no table, link, image or HTML can start."""
    flat = one_line(text)
    for sign in "\\|`[]<>!*_":
        flat = flat.replace(sign, "\\" + sign) if sign not in "<>" else flat
    return flat.replace("<", "&lt;").replace(">", "&gt;")
