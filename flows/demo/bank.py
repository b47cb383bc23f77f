"""The questions of `demo` and `agent_demo`: data files beside this module, the same everywhere.

`bank.jsonl` has several hundred questions with gold answers. 24 of them repeat another one in
other case, spacing or accents (`twin_of`): an uncased encoder gives both the same vector.
`hops.jsonl` has questions in two steps for agents, in the layout of HotpotQA: made-up people,
works and towns, where the first passage leads to the second and neither answers alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from routeyard.pipelines.common.staging import replacing

LETTERS = "ABCDEFGH"


@dataclass(frozen=True, slots=True)
class BankQuestion:
    """A question with its gold answer.

    Attributes:
        scorer: `mcq`, `numeric` or `em`.
        references: Accepted answers; the letter for `mcq`.
        twin_of: Id of the question this one repeats in other spelling, or None.
    """

    id: str
    task: str
    domain: str
    scorer: str
    question: str
    references: tuple[str, ...]
    choices: tuple[str, ...] = ()
    twin_of: str | None = None


@cache
def bank() -> tuple[BankQuestion, ...]:
    """All questions of `demo`, in an order that mixes the tasks."""
    return tuple(
        BankQuestion(
            **row
            | {"references": tuple(row["references"]), "choices": tuple(row.get("choices", ()))}
        )
        for row in _rows("bank.jsonl")
    )


@cache
def hops() -> tuple[Mapping[str, Any], ...]:
    """All questions of `agent_demo`: question, context (title → sentences), answer, bridge."""
    return tuple(_rows("hops.jsonl"))


def write(path: Path) -> Path:
    """Write the questions of `demo` as JSON lines, without what is planted; returns the path."""
    planted = {"twin_of"}  # the pipeline has to find the twins without help
    rows = [{k: v for k, v in asdict(q).items() if k not in planted} for q in bank()]
    return _write(path, rows, sort_keys=True)


def write_hops(folder: Path) -> tuple[Path, Path]:
    """Write the questions of `agent_demo`, and the answers their server knows, as JSON lines."""
    known = [
        {
            "question": row["question"],
            "references": [row["answer"]],
            "choices": [],
            "scorer": "f1",
            "bridge": row["bridge"],
        }
        for row in hops()
    ]
    return _write(folder / "hops.jsonl", hops()), _write(folder / "bank.jsonl", known)


def _rows(name: str) -> Iterable[dict[str, Any]]:
    text = files("routeyard.flows.demo").joinpath(name).read_text(encoding="utf-8")
    return map(json.loads, text.splitlines())


def _write(path: Path, rows: Iterable[Mapping[str, Any]], *, sort_keys: bool = False) -> Path:
    with replacing(path) as staged:
        lines = [json.dumps(row, ensure_ascii=False, sort_keys=sort_keys) + "\n" for row in rows]
        staged.write_text("".join(lines), encoding="utf-8")
    return path
