"""Files of three arms and 24 questions whose right answers are known."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from routeyard.pipelines.ingest.results import Results

ARMS = ("gpt-4o", "llama-3-8b", "claude-3-haiku")
N = 24
EVERY = [(arm, i) for arm in ARMS for i in range(N)]


def right(arm: str, i: int) -> bool:
    """Whether an arm answers a question: 16, 12 and 8 of 24."""
    return bool((i % 3 != 0, i % 2 == 0, i % 3 == 1)[ARMS.index(arm)])


SHARES = {arm: sum(right(arm, i) for i in range(N)) / N for arm in ARMS}


def dump(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(one) + "\n" for one in value) if path.suffix == ".jsonl" else ""
    path.write_text(lines or json.dumps(value), encoding="utf-8")


def table(path: Path, head: list[str], rows: list[list[Any]], sign: str = ",") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=sign).writerows([head, *rows])


def shares(found: Results) -> dict[str, float]:
    """Arm → its mean score."""
    means = found.table.group_by("arm").aggregate([("score", "mean")]).to_pylist()
    return {one["arm"]: round(one["score_mean"], 12) for one in means}
