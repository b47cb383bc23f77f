"""RouteLLM's files: a strong and a weak model, True/False per prompt, and battles to train on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routeyard.pipelines.common.errors import BadInput, UnknownName, did_you_mean
from routeyard.pipelines.release.exporters.bundle import (
    Exported,
    Exporter,
    pairs,
    write_csv,
    write_jsonl,
)
from routeyard.pipelines.release.reader import OpenRelease


def write(release: OpenRelease, folder: Path, options: Mapping[str, str]) -> Exported:
    """`mmlu_<task>.csv` per task and `battles.jsonl` of the training split.

    Queries that only one of the two models has a label for are left out.

    Raises:
        BadInput: `strong` or `weak` is not given.
        UnknownName: one of them is not in the release.
    """
    strong, weak = _pair(release, options)
    by_query: dict[str, dict[str, dict[str, Any]]] = {}
    for row in pairs(release):
        if row["model_id"] in (strong, weak):
            by_query.setdefault(row["query_id"], {})[row["model_id"]] = row
    both = {q: found for q, found in by_query.items() if len(found) == 2}
    tasks: dict[str, list[dict[str, dict[str, Any]]]] = {}
    for found in both.values():
        tasks.setdefault(found[strong]["task"], []).append(found)
    files: list[str] = []
    for task, rows in sorted(tasks.items()):
        name = f"mmlu_{_file_name(task, files)}.csv"
        files.append(name)
        cells = (
            (found[strong]["prompt"], *(bool(found[model]["correct"]) for model in (strong, weak)))
            for found in rows
        )
        write_csv(folder / name, ("prompt", strong, weak), cells)
    battles = (
        _battle(query, found, strong, weak)
        for query, found in both.items()
        if found[strong]["split"] == "train"
    )
    write_jsonl(folder / "battles.jsonl", battles)
    missing = len(by_query) - len(both)
    dropped = {"queries with a label of one model only": missing} if missing else {}
    return Exported((*files, "battles.jsonl"), 2 * len(both), dropped)


def _battle(
    query: str, found: Mapping[str, Mapping[str, Any]], strong: str, weak: str
) -> dict[str, Any]:
    a, b = found[strong]["score"], found[weak]["score"]
    return {
        "id": f"{query}|{strong}|{weak}",
        "model_a": strong,
        "model_b": weak,
        "prompt": json.dumps([found[strong]["prompt"]], ensure_ascii=False),
        "response_a": json.dumps([found[strong]["text"]], ensure_ascii=False),
        "response_b": json.dumps([found[weak]["text"]], ensure_ascii=False),
        "winner_model_a": int(a > b),
        "winner_model_b": int(b > a),
        "winner_tie": int(a == b),
    }


def _pair(release: OpenRelease, options: Mapping[str, str]) -> tuple[str, str]:
    models = release.arrow("models").column("model_id").to_pylist()
    for name in ("strong", "weak"):
        if name not in options:
            raise BadInput(
                f"RouteLLM knows two models; no {name} one is named",
                next_step=f"add --{name} MODEL; models: {', '.join(models[:8])}",
            )
        if options[name] not in models:
            raise UnknownName(
                f"there is no model {options[name]!r} in the release",
                next_step=did_you_mean(options[name], models),
            )
    if options["strong"] == options["weak"]:
        raise BadInput("the strong and the weak model are the same", next_step="name two models")
    return options["strong"], options["weak"]


def _file_name(task: str, taken: list[str]) -> str:
    """A task's name as part of a file name: nothing of it can leave the folder."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", task)[:80] or "task"
    number = 1
    unique = name
    while f"mmlu_{unique}.csv" in taken:
        number += 1
        unique = f"{name}_{number}"
    return unique


EXPORTER = Exporter("routellm", "RouteLLM", ("strong", "weak"), write)
