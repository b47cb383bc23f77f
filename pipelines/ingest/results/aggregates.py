"""Whether a group's records are figures of many questions each, and no answers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.ingest.results.arms import Assigned
from routeyard.pipelines.ingest.results.roles import candidates, rank_of
from routeyard.pipelines.ingest.results.values import numbers, snake_case, some, texts

_SPREAD = re.compile(
    r"(?:std_?err|stderr|std|_ci|ci_(?:low|high)|stddev|variance)(?:,\w+)?$", re.IGNORECASE
)


#: Columns of the two models of a battle: `model_a`, `generator_2`; ids of two models, no scores.
_SIDE = re.compile(
    r"^(?P<stem>(?:model|generator|system|agent|llm|player|assistant)(?:_?(?:name|id))?)_?"
    r"(?P<side>a|b|1|2|left|right)$"
)


def why_pairs(table: pa.Table) -> str:
    """Why rows are battles of two models, which have no score each; empty where they are not."""
    sides: dict[str, list[str]] = {}
    for name in table.column_names:
        if found := _SIDE.match(snake_case(name)):
            labels = pa.types.is_string(table.column(name).type)
            if labels and numbers(table.column(name)) is None:
                sides.setdefault(found["stem"], []).append(name)
    pair = next((names for names in sides.values() if len(names) == 2), None)
    if pair is None:
        return ""
    return (
        f"{pair[0]!r} and {pair[1]!r} name the two models of a battle: rows say which answer was "
        "preferred, and no answer has its own score (`routeyard import` reads alpaca_eval)"
    )


def why_aggregate(done: Assigned, around: set[str]) -> str:
    """Why each row is of many questions; empty where rows are answers."""
    table = done.table
    if table.num_rows == 0:
        return ""
    names = [n for n in table.column_names if not n.startswith("(") and n not in around]
    if spread := [] if "text" in done.roles else _spreads(table, names):
        return f"{spread[0]!r} states how far many scores spread"
    counting = candidates(table, "aggregate", frozenset(around))
    counts = [c.column for c in counting if "." not in c.column]
    for name in counts:
        values = numbers(table.column(name))
        if values is not None and _of_many(done, values):
            return f"{name!r} says that a row is of {int(np.nanmax(values)):,} questions"
    arm, question = done.roles.get("arm"), done.roles.get("question")
    if arm is not None and done.per_question:
        return _figures_of_suites(done)
    if arm is None:
        return ""
    if question is None:
        return _model_figures(done, arm, names)
    if _task_figures(done, question):
        tasks = len(pc.unique(table.column(question)))
        return f"{question!r} names {tasks} tasks, with one figure each"
    return ""


def _spreads(table: pa.Table, names: Sequence[str]) -> list[str]:
    """Columns of numbers that say how far scores spread; `stderr` is a stream of a program, too."""
    found = ((n, numbers(table.column(n))) for n in names if _SPREAD.search(n))
    return [n for n, values in found if values is not None and not np.isnan(values).all()]


def _figures_of_suites(done: Assigned) -> str:
    """Why each row of a table with columns of models is a whole suite; else empty."""
    table, arms = done.table, done.unique("arm")
    if done.roles.get("question") != "(row)" or {"text", "prompt"} & done.roles.keys():
        return ""
    if "score" not in done.roles or not _figures(table.column(done.roles["score"])):
        return ""
    for one in candidates(table, "suite"):
        suites = len(pc.unique(table.column(one.column)))
        if suites * arms == table.num_rows and suites <= 200:
            return f"{one.column!r} names {suites} suites, with one figure of each model"
    return ""


def _model_figures(done: Assigned, arm: str, names: Sequence[str]) -> str:
    """Why each row is a whole model, where no column names a question; else empty."""
    table = done.table
    if table.num_rows < 2 or len(pc.unique(table.column(arm))) <= 0.9 * table.num_rows:
        return ""
    figures = [n for n in names if n != arm and _figures(table.column(n))]
    if len(figures) < 2 and "score" not in done.roles:
        return ""
    return f"each row is one model with {len(figures)} figures, such as {', '.join(figures[:3])}"


def _of_many(done: Assigned, values: np.ndarray) -> bool:
    there = values[~np.isnan(values)]
    if len(there) < 0.5 * len(values) or "text" in done.roles:
        return False
    return bool(np.median(there) >= 10 and np.all(there == np.floor(there)))


def _figures(column: pa.ChunkedArray) -> bool:
    values = numbers(column)
    if values is None:
        return False
    there = values[~np.isnan(values)]
    return bool(len(there)) and not set(np.unique(there)) <= {0.0, 1.0}


def _task_figures(done: Assigned, question: str) -> bool:
    """Whether the only name of a question is that of a task, with fractions as scores."""
    named = rank_of(question, "suite") is not None and rank_of(question, "question") is not None
    score = done.roles.get("score")
    if score is None or not named or "text" in done.roles:
        return False
    values = numbers(done.table.column(score))
    labels = some(pa.chunked_array([texts(done.table.column(question)).unique()]), 300)
    if values is None or len(labels) > 200:
        return False
    there = values[~np.isnan(values)]
    return not set(np.unique(there)) <= {0.0, 0.5, 1.0}
