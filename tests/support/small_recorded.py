"""A recorded benchmark of a dozen questions, for tests of whole builds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

RECIPE: dict[str, Any] = {
    "name": "small",
    "version": "1.0.0",
    "sources": [
        {
            "name": "sums",
            "path": "questions.jsonl",
            "task": "sums",
            "scorer": "numeric",
            "fields": {"id": "id", "question": "question", "references": "answer"},
        }
    ],
    "pool": {"models": [{"model_id": "careful"}, {"model_id": "hasty"}]},
    "collect": {
        "provider": "recorded",
        "recorded": [
            {
                "path": "answers.jsonl",
                "fields": {"query": "id", "model": "model", "text": "output"},
            }
        ],
    },
    "split": {"train": 0.5, "validation": 0.25, "test": 0.25},
    "release": {"waivers": [{"gate": "metering", "reason": "Recorded without usage or prices."}]},
}


def build(folder: Path) -> Path:
    """The benchmark and, in `yard`, the workspace in which it was built; returns the folder.

    In a copy of the folder nothing is built again (the fixture `small` makes one).
    """
    from routeyard.flows.build import run_build

    run_build(str(write(folder)), str(folder / "yard"), jobs=1, until="release")
    return folder


def write(folder: Path, **change: Any) -> Path:
    """Questions, answers and recipe in a folder; `change` replaces recipe keys."""
    folder.mkdir(parents=True, exist_ok=True)
    questions, answers = [], []
    for i in range(12):
        questions.append(
            {"id": str(i), "question": f"What is {i} + {i + 1}?", "answer": str(2 * i + 1)}
        )
        answers.append({"id": str(i), "model": "careful", "output": f"Answer: {2 * i + 1}"})
        if i != 5:  # the hasty model never answered this one
            answers.append({"id": str(i), "model": "hasty", "output": f"Answer: {2 * i + i % 2}"})
    for name, rows in (("questions", questions), ("answers", answers)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(RECIPE | change))
    return path
