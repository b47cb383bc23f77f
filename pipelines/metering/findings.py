"""Input and findings of the metering audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.calls.bill import words
from routeyard.schemas.recipe.collect import Metering

#: Gate that waives every check; `metering:<check>` waives one.
GATE = "metering"
#: Rows a finding shows; `count` says how many there are.
SHOWN = 20
#: One answer: columns of `responses`, and of a ledger where it comes from one.
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MeteringFinding:
    """What one check found for one model.

    Attributes:
        rows: Up to 20 of the (query_id, sample) it is about; `count` has all.
        share: `count` over the model's answers, where the check judges a share.
    """

    check: str
    model_id: str
    says: str
    count: int
    rows: tuple[tuple[str, int], ...]
    share: float | None = None

    @property
    def gate(self) -> str:
        return f"{GATE}:{self.check}"


@dataclass(frozen=True)
class MeteringInput:
    """What the checks know beside the answers.

    Attributes:
        models: model_id → row of `models`.
        prompts: query_id → prompt.
        names: model_id → name the endpoint was asked for.
        price_changed: model_id → day of the last known price change (ISO 8601).
    """

    models: Mapping[str, Row]
    thresholds: Metering
    prompts: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    price_changed: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _words(self) -> tuple[pa.Array, Any]:
        counts = np.array([*map(words, self.prompts.values()), np.nan])
        return pa.array(self.prompts, pa.string()), counts

    def words_of_prompts(self, query_ids: pa.ChunkedArray) -> Any:
        """Words of the prompt of each question, as float64; NaN where it is not known."""
        ids, counts = self._words
        return counts[pc.fill_null(pc.index_in(query_ids, value_set=ids), -1).to_numpy()]


def finding(check: str, model_id: str, says: str, bad: pa.Table, of: int | None) -> MeteringFinding:
    """The finding of a check about some of a model's answers; `of` gives the share."""
    order = [("query_id", "ascending"), ("sample", "ascending")]
    first = bad.select(["query_id", "sample"]).sort_by(order).slice(0, SHOWN).to_pylist()
    rows = [(str(row["query_id"]), int(row["sample"])) for row in first]
    part = bad.num_rows / of if of else None
    return MeteringFinding(check, model_id, says, bad.num_rows, tuple(rows), part)
