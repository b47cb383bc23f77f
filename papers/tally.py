"""How many of a paper's values are printed, computed, equal, different, not to be had, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from routeyard.papers.printed import Verdict
from routeyard.papers.reproduction import ReproducedCell, Reproduction

#: Headings of the counts, in order.
COUNTS = ("printed", "computed", "equal", "differs", "cannot be computed")


def tally(found: Reproduction) -> list[dict[str, Any]]:
    """Each table and figure, then `in all`: item, title, the counts, and the reasons.

    `differs because` and `cannot because` are lists of `reason`, `cells`, most cells first.
    `computed` counts every value, also on other data than the paper's, whose cell stays
    `cannot be computed`. A figure prints no values; `drawn` says whether it was computed.
    """
    rows = [
        {
            "item": item.item,
            "title": item.title,
            "drawn": bool(item.made),
            **counts([cell for cell in found.cells if cell.item == item.item]),
        }
        for item in found.items
    ]
    whole = {"item": "in all", "title": found.paper.title, "drawn": any(r["drawn"] for r in rows)}
    return [*rows, {**whole, **counts(found.cells)}]


def counts(cells: Sequence[ReproducedCell]) -> dict[str, Any]:
    """The counts and reasons of some cells."""
    verdicts = Counter(cell.verdict for cell in cells)
    return {
        "printed": len(cells),
        "computed": sum(cell.value is not None for cell in cells),
        "equal": verdicts["equal"],
        "differs": verdicts["differs"],
        "cannot be computed": verdicts["cannot be computed"],
        "differs because": _reasons(cells, "differs"),
        "cannot because": _reasons(cells, "cannot be computed"),
    }


def _reasons(cells: Iterable[ReproducedCell], wanted: Verdict) -> list[dict[str, Any]]:
    found = Counter(cell.reason for cell in cells if cell.verdict == wanted)
    return [{"reason": reason, "cells": n} for reason, n in found.most_common()]
