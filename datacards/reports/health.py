"""The health report and the page of an audit: HTML and Markdown from the same sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from routeyard.datacards.card import environment, texts
from routeyard.datacards.charts import (
    MOST_CELLS,
    PAGE,
    PAPER,
    Look,
    agreement,
    bars,
    heatmap,
    histogram,
)
from routeyard.datacards.site.language import single_page

# Plots of the health report, as SVG text; the same tables give the same bytes.

#: Bars beyond which only both ends are drawn: they tell the story.
MOST_BARS = 60
#: Bars: plot → table, its columns of names (`of`) and values, factor, title and axis.
_BARS: dict[str, dict[str, Any]] = texts("health_bars.yaml")


def plot_all(tables: Mapping[str, pa.Table], look: Look = PAPER) -> dict[str, str]:
    """Name → SVG of every plot there is data for."""
    rows = {name: table.to_pylist() for name, table in tables.items() if name in _READ}
    made = {
        name: _bars(rows.get(about["table"], ()), name=name, about=about, look=look)
        for name, about in _BARS.items()
    }
    hard = [row["difficulty"] for row in rows["query_difficulty"] if row["difficulty"] is not None]
    if hard:
        made["difficulty"] = histogram(
            hard, name="difficulty", title="Difficulty of questions",
            x="share of models that are wrong", y="questions (count)", look=look,
        )  # fmt: skip
    made["task_similarity"] = _grid(
        [(r["task_a"], r["task_b"], r["similarity"]) for r in rows.get("task_similarity", ())],
        name="task_similarity", title="Similarity of every two tasks",
        value="cosine of mean embeddings", of=("task", "task"), share=False, look=look,
    )  # fmt: skip
    made["jaccard"] = agreement(
        rows.get("jaccard", ()), rows.get("models", ()), name="jaccard", look=look
    )
    made["coverage"] = _grid(
        [(r["model_id"], r["task"], r["labels"] / r["queries"]) for r in rows["coverage"]],
        name="coverage", title="Share of questions with a label, per model and task",
        value="share of questions with a label", of=("model", "task"), domain=(0.0, 1.0), look=look,
    )  # fmt: skip
    return {name: text for name, text in made.items() if text is not None}


_READ = frozenset({"query_difficulty", "task_similarity", "jaccard", "models", "coverage"}) | {
    about["table"] for about in _BARS.values()
}


def _grid(cells: Sequence[tuple[str, str, float | None]], **how: Any) -> str | None:
    """A heatmap, or None where it would be too large to read; the table is shown instead."""
    rows, columns = sorted({cell[0] for cell in cells}), sorted({cell[1] for cell in cells})
    if not 0 < len(rows) * len(columns) <= MOST_CELLS:
        return None
    return heatmap(cells, rows=rows, columns=columns, **how)


def _bars(rows: Sequence[Mapping[str, Any]], *, about: Mapping[str, Any], **how: Any) -> str | None:
    of, column = about["of"], about["column"]
    values = [
        {"name": row[of], "value": about["factor"] * row[column]}
        for row in rows
        if row[column] is not None
    ]
    if not values:
        return None
    if len(values) > MOST_BARS:
        values = [*values[: MOST_BARS // 2], *values[-MOST_BARS // 2 :]]
        of = f"{of} (both ends of the list)"
    form = ".0f" if isinstance(values[0]["value"], int) else "+.1f"
    return bars(
        values, title=about["title"], of=of, value=about["axis"], form=form,
        dots=about.get("dots", False), **how,
    )  # fmt: skip


#: Rows of a table that the page shows; the Parquet file has all of them.
MOST_ROWS = 200

#: Models that a note names.
_NAMED = 10
#: Sections: title, what it says, and its table and plot if it has them.
SECTIONS: list[dict[str, str]] = texts("health.yaml")


#: What budgets and the column `cost` are in.
_UNITS = {
    "usd": "USD per answer",
    "price": "list prices in + out, USD per 10⁶ tokens",
    "params": "parameters, 10⁹",
}
#: Columns that are shares or differences of shares, and what they are shown as.
_SHARES = {
    "accuracy": "%", "coverage": "%", "mean_jaccard": "%", "difficulty": "%", "best_accuracy": "%",
    "mean_accuracy": "%", "specialist_score": "points",
}  # fmt: skip
#: Names that the page gives to columns.
_NAMES = {
    "model_id": "model", "queries": "questions", "mean_jaccard": "mean agreement",
    "cluster_order": "place in clustering",
}  # fmt: skip


class Report(NamedTuple):
    """The page, the Markdown text, and the plots it links to by file name."""

    html: str
    markdown: str
    plots: Mapping[str, str]


def health_report(title: str, tables: Mapping[str, pa.Table], facts: Mapping[str, Any]) -> Report:
    """Render the figures of `routeyard.pipelines.curate.health`."""
    plots, drawn = plot_all(tables), plot_all(tables, PAGE)
    sections = [
        _section(item, tables, drawn, _unit(facts))
        for item in SECTIONS
        if item.get("table") in tables or item.get("plot") in plots
    ]
    return Report(*rendered(f"{title}: health", _figures(facts), _notes(facts), sections), plots)


def rendered(
    title: str,
    figures: Sequence[tuple[str, str]],
    notes: Sequence[str],
    sections: Sequence[Mapping[str, Any]],
    maker: str = "routeyard health",
) -> tuple[str, str]:
    """(HTML page, Markdown) of sections with a table or a plot each.

    Names come from outside: they are escaped in both forms, and the page's
    content security policy allows no request and no script but the page's own.
    """
    shown = {"title": title, "figures": figures, "notes": notes, "sections": sections}
    html = single_page("health.html.jinja", "site.js", maker=maker, **shown)
    text = environment().get_template("health.md.j2").render(**shown)
    return html + "\n", text.rstrip() + "\n"


def _section(
    about: Mapping[str, str], tables: Mapping[str, pa.Table], plots: Mapping[str, str], unit: str
) -> dict[str, Any]:
    rows, drawn = tables.get(about.get("table", "")), plots.get(about.get("plot", ""))
    shown = [] if rows is None else rows[:MOST_ROWS].to_pylist()
    return {
        **about,
        "plot_name": about["plot"] if drawn is not None else None,
        "plot": drawn,
        "columns": [] if rows is None else _columns(rows, unit),
        "rows": [[_cell(value, name) for name, value in row.items()] for row in shown],
        "left_out": 0 if rows is None else max(0, len(rows) - MOST_ROWS),
        "file": f"{about.get('table')}.parquet",
    }


def _unit(facts: Mapping[str, Any]) -> str:
    """Unit of the costs; empty where no model has a known cost."""
    unit = _UNITS.get(facts["cost_kind"] or "", "")
    return f"simulated {unit}" if facts["simulated"] and facts["cost_kind"] == "usd" else unit


def _columns(table: pa.Table, unit: str) -> list[dict[str, Any]]:
    return [
        {
            "name": f"cost ({unit})" if field.name == "cost" and unit else _column(field.name),
            "number": pa.types.is_floating(field.type) or pa.types.is_integer(field.type),
            "words": False,
        }
        for field in table.schema
    ]


def _column(name: str) -> str:
    named = _NAMES.get(name, name.replace("_", " "))
    return f"{named} (points)" if _SHARES.get(name) == "points" else named


def _cell(value: Any, column: str = "") -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        if shown := _SHARES.get(column):
            return f"{100 * value:.1f} %" if shown == "%" else f"{100 * value:+.1f}"
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def _figures(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    named = {"queries": "questions", "tasks": "tasks", "models": "models", "labels": "labels"}
    shown = [(name, _cell(facts[key])) for key, name in named.items()]
    shown.append(("coverage", _cell(facts["coverage"], "coverage")))
    for key, name in (
        ("duplicate_groups", "groups of near-duplicates"),
        ("conflicting_groups", "of them with conflicting labels"),
    ):
        shown.append((name, "not looked for" if facts[key] is None else _cell(facts[key])))
    if facts["pseudo_specialists"]:
        shown.append(("pseudo-specialists, not counted", _cell(facts["pseudo_specialists"])))
    return shown


def _notes(facts: Mapping[str, Any]) -> list[str]:
    notes = []
    if facts["unlimited_budget"]:
        notes.append("No model has a cost: specialist scores use one unlimited budget.")
    else:
        notes.append(
            f"Specialist scores are means over {facts['budgets']} budgets ({_unit(facts)}); "
            f"{facts['skipped_budgets']} with a single affordable model were skipped."
        )
    if facts["models_without_cost"]:
        without = facts["models_without_cost"]
        named = ", ".join(without[:_NAMED])
        more = f" and {len(without) - _NAMED} more" if len(without) > _NAMED else ""
        notes.append(
            f"Models without a known cost ({_unit(facts)}), which no budget has a place for: "
            f"{named}{more}."
        )
    if facts["generalists"]:
        notes.append("Generalists: " + ", ".join(facts["generalists"][:20]) + ".")
    if facts["encoder"]:
        notes.append(f"Embeddings: {facts['encoder']}.")
    notes += [f"Not measured: {what}." for what in facts["not_measured"]]
    return notes


# The page of an audit: findings, and what they do to the leaderboard.

#: Column of the page's table of findings → key of a finding.
_FINDINGS = {
    "severity": "severity", "kind": "kind", "about": "about", "what was found": "says",
    "answers": "count", "when mended": "effect", "recipe key": "key", "first row": "rows",
}  # fmt: skip
_ARMS = (
    "arm", "scored", "asked", "accuracy", "low", "high", "imputed", "without_faults", "place",
    "place_without_faults",
)  # fmt: skip
#: Columns that wrap; `long` ones get the room.
_SENTENCES = {"about": True, "what was found": "long", "when mended": True, "recipe key": True,
              "first row": True}  # fmt: skip
_NUMBERS = frozenset({"answers", *(name.replace("_", " ") for name in _ARMS[1:])})
_MOST = 500
#: Names that are shown of a finding about many.
NAMED = 3


def audit_report(audit: Mapping[str, Any]) -> tuple[str, str]:
    """(HTML page, Markdown) of what `routeyard audit` found.

    Args:
        audit: what `--json` prints.
    """
    rows = [
        [_of_finding(item[key]) for key in _FINDINGS.values()]
        for item in (
            {**each, "about": whom(each["about"], each["parts"])} for each in audit["findings"]
        )
    ]
    arms = [[_of_finding(item[name]) for name in _ARMS] for item in audit["leaderboard"]]
    sections = [
        _audit_section(
            "Findings",
            "Those that change the leaderboard most when they are mended come first.",
            list(_FINDINGS),
            rows,
        ),
        _audit_section(
            "Leaderboard",
            "By the lower bound, which counts missing answers as wrong. `imputed` fills missing "
            "answers by the difficulty of their questions; `without faults` leaves out errors of "
            "the infrastructure and ungraded answers.",
            [name.replace("_", " ") for name in _ARMS],
            arms,
        ),
    ]
    figures = [
        ("verdict", audit["verdict"]), *((k, f"{v:,}") for k, v in audit["looked_at"].items()),
    ]  # fmt: skip
    return rendered(
        f"{audit['title']}: audit", figures, list(audit["notes"]),
        [section for section in sections if section["rows"]], "routeyard audit",
    )  # fmt: skip


def _audit_section(
    title: str, says: str, columns: Sequence[str], rows: list[list[str]]
) -> dict[str, Any]:
    return {
        "title": title,
        "says": says,
        "plot": None,
        "plot_name": None,
        "columns": [
            {"name": name, "number": name in _NUMBERS, "words": _SENTENCES.get(name, False)}
            for name in columns
        ],
        "rows": rows[:_MOST],
        "left_out": max(0, len(rows) - _MOST),
        "file": "audit.json",
    }


def _of_finding(value: Any) -> str:
    if isinstance(value, list | tuple):  # rows: the first one's place
        item: Mapping[str, Any] = next(iter(value), {})
        rest = ", ".join(f"{k} {v}" for k, v in item.items() if k != "says")
        value = str(item.get("at") or rest) if item else None
    return _cell(value, "accuracy")


def whom(about: str, parts: Sequence[Mapping[str, Any]]) -> str:
    """Whom a finding is about, the first three of many."""
    if len(parts) <= NAMED:
        return about
    first = ", ".join(str(part["about"]) for part in parts[:NAMED])
    return f"{first} and {len(parts) - NAMED:,} more"
