"""The leaderboard with what missing answers leave open, and as policies would have it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.audit.answers import Answers
from routeyard.pipelines.audit.errors import not_graded
from routeyard.pipelines.audit.missing import coverage


def leaderboard(table: pa.Table) -> list[dict[str, Any]]:
    """Arms by the lower bound of their accuracy, which counts missing answers as wrong.

    A row is arm, scored and asked questions, accuracy, `low` and `high` (missing ones wrong, or
    right), `imputed` (missing ones by their difficulty), `without_faults` (errors of the
    infrastructure and ungraded answers left out), and the places by accuracy and without faults.
    """
    answers = Answers.of(table)
    if not len(answers) or np.isnan(answers.score).all():
        return []
    found = coverage(answers)
    mended = coverage(Answers.of(_without(answers)))
    places = [_places(values) for values in (found.accuracy, mended.accuracy)]
    order = np.argsort(-np.nan_to_num(found.low, nan=-1), kind="stable")
    return [
        {
            "arm": answers.arms[a],
            "scored": int(found.n[a]),
            "asked": int(found.of[a]),
            "accuracy": _known(found.accuracy[a]),
            "low": _known(found.low[a]),
            "high": _known(found.high[a]),
            "imputed": _known(found.imputed[a]),
            "without_faults": _known(mended.accuracy[a]),
            "place": places[0][a],
            "place_without_faults": places[1][a],
        }
        for a in order
    ]


def _without(answers: Answers) -> pa.Table:
    """The recording with no score where nobody answered or graded."""
    score = np.where(not_graded(answers), np.nan, answers.score)
    at = answers.table.column_names.index("score")
    values = pa.array(score, pa.float64(), from_pandas=True)
    return answers.table.set_column(at, "score", values)


def _places(values: np.ndarray) -> list[int | None]:
    return [None if np.isnan(one) else int((values > one).sum()) + 1 for one in values]


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
