"""Label conflicts within a group of near-duplicates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Conflict:
    """What is contradictory in one group.

    Attributes:
        within: Models that are right on one member and wrong on another.
        across: Two models trade places: one is right where the other is wrong
            on one member, and the other way round on another member.
    """

    within: int
    across: bool


@dataclass(frozen=True, slots=True)
class LabelIndex:
    """Decided labels by query; undecided ones conflict with nothing."""

    by_query: dict[str, dict[str, bool]]

    @classmethod
    def of(cls, labels: pa.Table | None) -> LabelIndex:
        by_query: dict[str, dict[str, bool]] = defaultdict(dict)
        columns = ("query_id", "model_id", "correct")
        if labels is not None:
            for query, model, correct in zip(
                *(labels.column(name).to_pylist() for name in columns), strict=True
            ):
                if correct is not None:
                    by_query[query][model] = correct
        return cls(dict(by_query))

    def count(self, query_id: str) -> int:
        return len(self.by_query.get(query_id, {}))

    def conflict(self, members: Sequence[str]) -> Conflict:
        rows = [self.by_query[member] for member in members if member in self.by_query]
        models = sorted({model for row in rows for model in row})
        if len(rows) < 2 or not models:
            return Conflict(0, False)
        state = np.array([[row.get(model, -1) for model in models] for row in rows], dtype=np.int8)
        state = np.unique(state, axis=0)  # copies with the same labels add nothing
        right = (state == 1).astype(np.float32)
        wrong = (state == 0).astype(np.float32)
        within = int((right.any(axis=0) & wrong.any(axis=0)).sum())
        # turned[x, y]: models right on x and wrong on y.
        turned = right @ wrong.T
        return Conflict(within, bool(((turned > 0) & (turned.T > 0)).any()))
