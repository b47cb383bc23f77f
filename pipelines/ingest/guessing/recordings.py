"""Tables of answers, recognised by their columns: a row per answer.

A table of answers taken for one of questions makes a benchmark of nothing, so it is recognised
before a recipe is written, and its columns are named as `collect.recorded` wants them. Names,
scales and units are those by which any results are read (`ingest/results`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from routeyard.pipelines.ingest.guessing.guess import Row, here, reach
from routeyard.pipelines.ingest.results.columns import table_of
from routeyard.pipelines.ingest.results.roles import FAMILY, candidates, rank_of
from routeyard.pipelines.ingest.results.values import factor, numbers, scale_of, some
from routeyard.schemas.statuses import status_of

#: Role of a result → field of a recording, in the order in which they take columns.
_FIELDS = {
    "arm": "model", "question": "query", "text": "text", "score": "score", "sample": "sample",
    "prompt_tokens": "prompt_tokens", "completion_tokens": "completion_tokens",
    "cost": "cost_usd", "latency": "latency_s", "served_model": "served_model",
    "status": "status", "error": "error", "prompt": "prompt",
}  # fmt: skip
#: Rank of a name from which it may be that of something else than a model.
_MODELS = 8
#: Columns of a question's text that can replace its id.
_ASKED = ("query", "question", "prompt")


def answers_of(rows: Sequence[Row]) -> dict[str, str] | None:
    """Field of a recording → mapping, for a table with one row per answer; None for another."""
    table = table_of([{str(name): _filled(value) for name, value in row.items()} for row in rows])
    taken: dict[str, str] = {}
    for role in _FIELDS:
        column = _column(table, role, frozenset(taken.values()))
        if column is not None:
            taken[role] = column
        elif role == "arm":
            return None
    if not {"text", "score"} & taken.keys():
        return None
    named = {role: _FIELDS[role] for role in taken}
    if "status" in taken:
        named["status"] = _field_of_status(taken["status"])
    return {named[role]: _mapped(table, role, column) for role, column in taken.items()}


def _filled(value: Any) -> Any:
    return None if value == "" else value


def _column(table: pa.Table, role: str, taken: frozenset[str]) -> str | None:
    """The column with the best name for a role whose values fit it; None without one."""
    found = [one.column for one in candidates(table, role, taken)]
    if role == "arm":
        found = [name for name in found if _is_model(table, name)]
    elif role == "question" and not found:
        found = [name for name in table.column_names if name.lower() in _ASKED]
    elif role == "sample":
        found = [name for name in found if rank_of(name, "sample") < 8]  # type: ignore[operator]
    elif role == "status":
        found = [name for name in found if _is_status(table, name, taken)]
    return next(iter(found), None)


def _is_status(table: pa.Table, name: str, taken: frozenset[str]) -> bool:
    """Whether a column says how answers ended: by its words, or beside answers that are empty.

    A word that nobody knows beside an empty answer is no reason to leave the column out: the build
    asks what it means.
    """
    column = table.column(name)
    texts = [one for one in taken if rank_of(one, "text") is not None]
    empty = [table.column(one).is_null() for one in texts]
    beside = [v for where in empty for v in some(column.filter(where))]
    return all(map(status_of, some(column))) or bool(beside)


def _is_model(table: pa.Table, name: str) -> bool:
    seen = {str(value) for value in some(table.column(name))}
    family = sum(bool(FAMILY.search(one)) for one in seen)
    return (rank_of(name, "arm") or 0) < _MODELS or 2 * family >= max(1, len(seen))


def _field_of_status(name: str) -> str:
    ended = any(word in name.lower() for word in ("finish", "stop", "terminat"))
    return "finish_reason" if ended else "status"


def _mapped(table: pa.Table, role: str, name: str) -> str:
    """The column, or an expression that brings it to USD, seconds, or scores from 0 to 1."""
    by, low = factor(name, role), 0.0
    if role == "score" and (values := numbers(table.column(name))) is not None:
        scale = scale_of(values, name)
        if scale is not None and not pa.types.is_boolean(table.column(name).type):
            by, low = 1 / (scale.high - scale.low), scale.low
    if by == 1 and low == 0:
        return reach(name)
    value = here(name)
    number = f"({value} | float - {low:g})" if low else f"{value} | float"
    return f"{{{{ none if {value} in (none, '') else {number} * {by:g} }}}}"


def holds_answers(rows: Sequence[Row], asked: Sequence[Any] | None) -> bool:
    """Whether rows are answers of models, not questions.

    Rows that name a model are answers where none of their columns holds questions, or where the
    same question comes again.

    Args:
        asked: What each row asks; None where no column is named as questions are.
    """
    repeats = asked is None or len({*map(str, asked)}) < len(asked)
    return repeats and answers_of(rows) is not None
