"""Our scorer `numeric` beside lm-evaluation-harness's two GSM8K filters, on recorded responses.

Reads ROUTEYARD_DATA (`zeroeval_gsm/`) and needs the peer's environment (ROUTEYARD_PEERS).
Speed is CPU-seconds for the same rows; agreement is with the published labels.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from benchmarks.label import _rows
from benchmarks.peers.install import ask


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--responses", type=int, default=20_000, help="first N; 0 for all")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    from routeyard.pipelines.label.scorers import SCORERS
    from routeyard.pipelines.label.scorers.scorer import ScoringInput

    rows = _rows(arguments.responses)
    lines = "\n".join(json.dumps({"gold": row[1].lstrip("# "), "output": row[2]}) for row in rows)
    theirs = ask("lm_eval", "lm_eval_filters", rows=lines)
    if theirs is None:
        raise SystemExit("ROUTEYARD_PEERS names no folder made by `python -m benchmarks peers`")
    read = SCORERS.get("numeric").read
    began = time.process_time()
    ours = [read(ScoringInput(row[0], (row[1],)), row[2]).outcome == "correct" for row in rows]
    seconds = time.process_time() - began
    published = [row[3] for row in rows]
    figures: dict[str, Any] = {"responses": len(rows), "ours_s": round(seconds, 3)}
    figures["ours_agreement"] = _agreement(ours, published)
    for name, key in (("strict-match", "strict"), ("flexible-extract", "flexible")):
        figures[f"{key}_s"] = round(theirs[name]["seconds"], 3)
        figures[f"{key}_agreement"] = _agreement(theirs[name]["right"], published)
        figures[f"ratio_to_{key}"] = round(theirs[name]["seconds"] / seconds, 3)
    return figures


def _agreement(right: list[bool], published: list[bool]) -> float:
    same = sum(a == b for a, b in zip(right, published, strict=True))
    return round(same / len(published), 5)
