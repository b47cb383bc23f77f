"""Scorers that a recipe names now, put in place of those that stored questions were read with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.scorers import SCORERS


class ScorerChange(NamedTuple):
    """A source whose questions are read by another scorer than when they were stored."""

    source: str
    before: str
    after: str
    questions: int

    @property
    def instruction(self) -> str:
        """The key of the source that keeps the instruction of the earlier scorer."""
        known = self.before in SCORERS.names()
        told = SCORERS.get(self.before).instruction if known else ""
        return f"instruction: {json.dumps(told, ensure_ascii=False)}"


def rescored(queries: pa.Table, scorers: Mapping[str, str]) -> tuple[pa.Table, list[ScorerChange]]:
    """Questions with the scorers of `scorers` (source → name), and what that changes.

    Questions of sources that are not in it keep theirs.
    """
    columns = queries.select(["source", "scorer"]).to_pylist()
    counted: dict[tuple[str, str, str], int] = {}
    names: list[Any] = []
    for row in columns:
        after = scorers.get(row["source"], row["scorer"])
        names.append(after)
        if after != row["scorer"]:
            key = (row["source"], row["scorer"], after)
            counted[key] = counted.get(key, 0) + 1
    changed = [ScorerChange(*key, count) for key, count in sorted(counted.items())]
    at = queries.schema.get_field_index("scorer")
    return queries.set_column(at, queries.schema.field(at), pa.array(names, pa.string())), changed


def reworded(queries: pa.Table, stored: pa.Table) -> dict[str, int]:
    """Source → questions whose prompt is another one than that under which they were stored."""
    there = stored.select(["query_id", "prompt"])
    at = pc.index_in(queries.column("query_id"), there.column("query_id").combine_chunks())
    known = np.asarray(pc.is_valid(at))
    old = there.column("prompt").take(at)
    differs = np.asarray(pc.fill_null(pc.not_equal(queries.column("prompt"), old), False)) & known
    found = queries.column("source").filter(pa.array(differs)).value_counts().to_pylist()
    return {row["values"]: row["counts"] for row in sorted(found, key=lambda row: row["values"])}
