"""Tables of answers, recognised by their columns: a row per answer, or a score column per model.

A table of answers taken for one of questions makes a benchmark of nothing, so it is recognised
before a recipe is written, and its columns are named as `collect.recorded` wants them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from routeyard.pipelines.ingest.guessing.guess import Guess, Row, Table
from routeyard.pipelines.ingest.guessing.roles import ANSWER_ROLES
from routeyard.pipelines.ingest.guessing.values import scores

#: What is written before or after the model's name in a column of scores.
_SCORE = r"(?:is[ _-]?)?(?:scores?|acc(?:uracy)?|correct|grades?|quality|performance|labels?|eval)"
_BEFORE = re.compile(rf"^{_SCORE}[\s:_|/.\-]+(?=\S)", re.IGNORECASE)
_AFTER = re.compile(rf"(?<=\S)[\s:_|/.\-]+{_SCORE}$", re.IGNORECASE)
#: Families and sizes that names of models hold.
_FAMILY = re.compile(
    r"gpt|claude|gemini|gemma|llama|mi[sx]tral|qwen|deepseek|phi-?\d|command-?r|grok|falcon|"
    r"vicuna|zephyr|yi-\d|olmo|nova|\d(?:\.\d)?b\b",
    re.IGNORECASE,
)


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


def score_columns(rows: Sequence[Row], guess: Guess) -> dict[str, str]:
    """Model → its column, for a table with one row per question and one score per model.

    Two columns at least, each of numbers in [0, 1] or true and false. Where the table has
    references too, the columns have to be named as models or scores are.
    """
    table, references = Table(rows), guess.fields.get("references")
    taken = {guess.fields.get("question"), guess.fields.get("id")}
    mapped = repr(list(guess.fields.values())) if "references" in guess.fields else ""
    columns = [
        name
        for name in table.columns
        if not (name in taken or repr(name) in mapped or "{{" in name) and scores(table.seen(name))
    ]
    named = [name for name in columns if _BEFORE.match(name) or _AFTER.search(name)]
    all_named = len(named) == len(columns)
    if len(columns) >= 2 and named:
        columns = named
    of_models = 2 * sum(bool(_FAMILY.search(name)) for name in columns) >= len(columns)
    unclear = "references" in guess.fields and references not in columns
    if len(columns) < 2 or (unclear and not (all_named or of_models)):
        return {}
    return _model_names(columns)


def _model_names(columns: Sequence[str]) -> dict[str, str]:
    """Model → column: the columns' names without the word for a score that all of them have."""
    for sign in (_BEFORE, _AFTER):
        if all(sign.search(name) for name in columns):
            cut = {sign.sub("", name).strip(): name for name in columns}
            return cut if len(cut) == len(columns) else {name: name for name in columns}
    return {name: name for name in columns}
