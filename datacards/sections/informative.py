"""Card section of `collect.strategy: informative`: plain means beside weighted estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def informative_section(figures: Mapping[str, Any], cell: Callable[[Any], str]) -> str:
    """Markdown of what the rounds say, or "" where every pair was to be asked.

    Args:
        figures: A manifest's `figures`; `figures["collect"]["informative"]` is made by the
            collect stage.
        cell: Makes text safe in a table's cell.
    """
    found = (figures.get("collect") or {}).get("informative")
    if not found:
        return ""
    rounds = found["rounds"]
    lines = [
        "## What was asked, and what it says of all questions",
        "",
        f"Collected in {len(rounds)} rounds: {found['asked']:,} of {found['pairs']:,} pairs "
        f"({100 * found['asked'] / found['pairs']:.1f} %) were asked, those that part models "
        "which were not told apart yet. The plain mean is over what was asked; the weighted "
        "estimate is of all questions, without bias, by the inverse of the chance with which "
        "each was drawn, with its 95 % interval. Models that stood apart early were asked less. "
        f"{found['unresolved']} pairs of models are neither told apart nor known to differ by at "
        f"most {found['resolve']:g}.",
        "",
        "| model | asked | plain mean | weighted | 95 % interval |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    ranked = sorted(found["models"], key=lambda row: (-(row["weighted"] or 0), row["model_id"]))
    lines += [
        f"| {cell(row['model_id'])} | {row['asked']:,} | {_percent(row['plain'])} "
        f"| {_percent(row['weighted'])} | {_percent(row['low'])} to {_percent(row['high'])} |"
        for row in ranked
    ]
    return "\n".join([*lines, ""])


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"
