"""Rows of large tables as JSON: the page makes them when they are looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from routeyard.datacards.markdown import texts
from routeyard.datacards.site.language import chance, router

Row = Mapping[str, Any]
#: A cell as text, or text and the number it is sorted by.
Cell = str | list[Any]
#: (metric, heading, filter of the template, what it says); `{}` is the measure.
COLUMNS: list[tuple[str, str, str, str]] = [
    tuple(one) for one in texts("evaluation.yaml")["columns"]
]
_HEADINGS: dict[str, str] = {
    **texts("evaluation.yaml")["compared"],
    **{one[0]: one[1] for one in COLUMNS},
}
_UNITS = {"usd": "USD", "latency": "seconds", "params": "parameters"}


def figure_rows(metrics: Sequence[Row]) -> list[list[Cell]]:
    """figure, router, questions, n, value, interval, why not known."""
    return [
        [
            row["metric"],
            router(row["router"]),
            row["split"],
            f"{row['n']:,}" if row.get("n") else "–",
            [_plain(row["value"]), row["value"]],
            _interval(row, _plain),
            row.get("reason") or "",
        ]
        for row in metrics
    ]


def pair_rows(pairs: Sequence[Row]) -> list[list[Cell]]:
    """first, second, figure, difference, interval, chance, told apart."""
    found: list[list[Cell]] = []
    for row in pairs:
        share = row["metric"] == "accuracy"
        form = _points if share else _plain
        difference = form(row["difference"]) + (
            " points" if share and row["difference"] is not None else ""
        )
        found.append(
            [
                router(row["first"]),
                router(row["second"]),
                _figure(row["metric"]),
                [difference, row["difference"]],
                _interval(row, form),
                [chance(row["p_adjusted"]), row["p_adjusted"]],
                "yes" if row["significant"] else "no",
            ]
        )
    return found


def _figure(metric: str) -> str:
    """A metric in the words of the ranking's columns, its cost measure behind it."""
    name, bracket, measure = metric.partition("[")
    form = f"{name}[{{}}]" if bracket else name
    if metric in _HEADINGS or form not in _HEADINGS:
        return _HEADINGS.get(metric, metric)
    measure = measure.removesuffix("]")
    return f"{_HEADINGS[form]}: {_UNITS.get(measure, measure)}"


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _points(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:+.1f}"


def _interval(row: Row, form: Any) -> str:
    if row["low"] is None or row["high"] is None:
        return "–"
    return f"{form(row['low'])} to {form(row['high'])}"
