"""Which answers of one model are missing, by what the ledger has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from routeyard.pipelines.arrays import Bools
from routeyard.pipelines.calls.known_answers import KnownAnswers
from routeyard.pipelines.calls.request import RequestSettings
from routeyard.pipelines.collect.model_prompts import ModelPrompts
from routeyard.pipelines.ledger.answer_keys import SettledKey
from routeyard.pipelines.ledger.ledger import Ledger
from routeyard.schemas.recipe.collect import Collect

#: Pairs looked up in the ledger at a time.
CHUNK = 1000


@dataclass(frozen=True)
class MissingAnswers:
    """What one model is still to be asked.

    Attributes:
        missing: True where an answer is missing, bool [q, samples].
        truncated: True where the larger limit is to be asked, bool [q, samples].
        billed: Attempts so far that were billed without an answer, int32 [q, samples].
        unanswered: True where they are so many that nothing more is asked.
    """

    missing: Bools
    truncated: Bools
    billed: np.ndarray[Any, np.dtype[np.int32]]
    unanswered: Bools


def missing_of(
    asks: ModelPrompts,
    rows: np.ndarray[Any, np.dtype[np.int32]],
    settings: RequestSettings,
    larger: RequestSettings | None,
    collect: Collect,
    ledger: Ledger | None,
    benchmark: str,
) -> MissingAnswers:
    """Wanted minus settled, for the queries in `rows`.

    Args:
        asks: What the model is asked of each query.
        larger: Settings with the larger token limit, if truncated answers are asked again.
    """
    shape = (len(rows), asks.samples)
    rejected = np.zeros(shape, bool)
    made = MissingAnswers(
        np.ones(shape, bool),
        np.zeros(shape, bool),
        np.zeros(shape, np.int32),
        np.zeros(shape, bool),
    )
    if ledger is None:
        return made
    known = KnownAnswers(ledger, settings, benchmark)
    known_larger = KnownAnswers(ledger, larger, benchmark) if larger else None
    for start in range(0, len(rows), CHUNK):
        asked = [asks.messages(int(row)) for row in rows[start : start + CHUNK]]
        found = known.settled(asked)
        found_larger = known_larger.settled(asked) if known_larger else {}
        for offset, texts in enumerate(asked):
            name = settings.request_hash(texts)
            for sample in range(asks.samples):
                row = found.get((name, sample))
                at = (start + offset, sample)
                if row is not None and row.status == "error":
                    rejected[at] = row.permanent
                if larger and row is not None and row.status == "truncated":
                    made.truncated[at] = True
                    row = found_larger.get((larger.request_hash(texts), sample))
                made.missing[at] = not settles(row, collect)
                made.billed[at] = row.billed if row else 0
                made.unanswered[at] = row is not None and unanswered(
                    row.status, row.billed, collect
                )
    # What refuses every question refuses how it is asked.
    if rejected.any() and not known.answering:
        made.missing[rejected] = True
    return made


def unanswered(status: str, billed: int, collect: Collect) -> bool:
    """Whether a pair is given up: billed so often, and never answered."""
    return status == "error" and billed >= collect.unanswered.after


def settles(row: SettledKey | None, collect: Collect) -> bool:
    """Whether nothing more is asked where this is the result."""
    if row is None:
        return False
    if row.status == "error":
        if unanswered(row.status, row.billed, collect):
            return "unanswered" not in collect.reask
        return row.permanent and "error" not in collect.reask
    return not (row.status == "refused" and "refused" in collect.reask)
