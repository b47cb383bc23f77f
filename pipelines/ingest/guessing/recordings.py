"""Tables of answers, recognised by their columns: a row per answer.

A table of answers taken for one of questions makes a benchmark of nothing, so it is recognised
before a recipe is written, and its columns are named as `collect.recorded` wants them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from routeyard.pipelines.ingest.guessing.guess import Guess, Row, Table
from routeyard.pipelines.ingest.guessing.roles import ANSWER_ROLES


def answers_of(rows: Sequence[Row]) -> dict[str, str] | None:
    """Field of a recording → mapping, for a table with one row per answer; None for another."""
    table, found = Table(rows), Guess([])
    for name, role in ANSWER_ROLES.items():
        column = role.column([c for c in table.columns if c not in found.used], table)
        if column is not None:
            found.take(name, column, "by its name")
        elif name == "model":
            return None
    return found.fields if {"text", "score"} & found.fields.keys() else None


def holds_answers(rows: Sequence[Row], asked: Sequence[Any] | None) -> bool:
    """Whether rows are answers of models, not questions.

    Rows that name a model are answers where none of their columns holds questions, or where the
    same question comes again.

    Args:
        asked: What each row asks; None where no column is named as questions are.
    """
    repeats = asked is None or len({*map(str, asked)}) < len(asked)
    return repeats and answers_of(rows) is not None
