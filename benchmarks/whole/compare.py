"""Two files of `python -m benchmarks all`: what got worse beyond noise.

A figure is worse when the medians differ in the bad direction by more than the
larger of `--tolerance` and three times the larger relative spread of the two runs.
Ratios to peers and exact figures are judged; `--absolute` judges seconds and
megabytes too, which only makes sense on one machine. Exit 1 when anything is worse.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", type=Path, help="the baseline, such as benchmarks/RESULTS.json")
    parser.add_argument("new", type=Path)
    parser.add_argument("--tolerance", type=float, default=0.15, help="share that is noise")
    parser.add_argument("--absolute", action="store_true", help="judge seconds and sizes too")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    from benchmarks.whole import results

    old, new = results.read(arguments.old), results.read(arguments.new)
    rows = compared(old, new, arguments.tolerance, arguments.absolute)
    worse = [row for row in rows if row["worse"]]
    return {"judged": len(rows), "worse": worse, "exit": 1 if worse else 0}


def compared(
    old: dict[str, Any], new: dict[str, Any], tolerance: float, absolute: bool
) -> list[dict[str, Any]]:
    """Each figure that both files have and that is judged, with its change as a share."""
    before = {(case["name"], one["key"]): one for case in old["cases"] for one in case["figures"]}
    rows = []
    for case in new["cases"]:
        for after in case["figures"]:
            was = before.get((case["name"], after["key"]))
            judged = absolute or after["ratio"] or after["better"] == "exact"
            if was is None or not judged or was["median"] is None:
                continue
            name = f"{case['name']}.{after['key']}"
            rows.append({"figure": name, **_judge(was, after, tolerance)})
    return rows


def _judge(was: dict[str, Any], now: dict[str, Any], tolerance: float) -> dict[str, Any]:
    row = {"old": was["median"], "new": now["median"]}
    if now["median"] is None:  # a peer that is gone is not a regression, and not nothing either
        return row | {"change": None, "worse": False, "says": "no longer measured"}
    if was["better"] == "exact":
        return row | {"change": None, "worse": was["median"] != now["median"], "says": "exact"}
    change = now["median"] / was["median"] - 1 if was["median"] else 0.0
    noise = max(tolerance, 3 * max(_spread(was), _spread(now)))
    bad = change if was["better"] == "lower" else -change
    return row | {
        "change": round(change, 4),
        "worse": bad > noise,
        "says": f"beyond {noise:.0%} is more than noise",
    }


def _spread(figure: dict[str, Any]) -> float:
    """Half the range of the runs over their median."""
    if not figure["median"]:
        return 0.0
    return float((figure["high"] - figure["low"]) / 2 / abs(figure["median"]))
