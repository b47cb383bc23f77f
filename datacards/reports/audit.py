"""The page of an audit: HTML and Markdown from one list of findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from routeyard.datacards.reports.health import rendered

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


def audit_report(found: Mapping[str, Any]) -> tuple[str, str]:
    """(HTML page, Markdown) of what `routeyard audit` found.

    Names and texts come from strangers: they are escaped in both forms.

    Args:
        found: what `--json` prints.
    """
    rows = [
        [_cell(one[key]) for key in _FINDINGS.values()]
        for one in (
            {**each, "about": whom(each["about"], each["parts"])} for each in found["findings"]
        )
    ]
    arms = [[_cell(one[name]) for name in _ARMS] for one in found["leaderboard"]]
    sections = [
        _section(
            "Findings",
            "Those that change the leaderboard most when they are mended come first.",
            list(_FINDINGS),
            rows,
        ),
        _section(
            "Leaderboard",
            "By the lower bound, which counts missing answers as wrong. `imputed` fills missing "
            "answers by the difficulty of their questions; `without faults` leaves out errors of "
            "the infrastructure and ungraded answers.",
            [name.replace("_", " ") for name in _ARMS],
            arms,
        ),
    ]
    figures = [
        ("verdict", found["verdict"]), *((k, f"{v:,}") for k, v in found["looked_at"].items()),
    ]  # fmt: skip
    return rendered(
        f"{found['title']}: audit", figures, list(found["notes"]),
        [one for one in sections if one["rows"]], "routeyard audit",
    )  # fmt: skip


def _section(
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


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{100 * value:.1f} %"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, str):
        return value
    first = next(iter(value), None)
    if first is None:
        return "–"
    return str(first.get("at") or ", ".join(f"{k} {v}" for k, v in first.items() if k != "says"))


def whom(about: str, parts: Sequence[Mapping[str, Any]]) -> str:
    """Whom a finding is about, the first three of many."""
    if len(parts) <= NAMED:
        return about
    first = ", ".join(str(one["about"]) for one in parts[:NAMED])
    return f"{first} and {len(parts) - NAMED:,} more"
