"""Scorers that a recipe names now, put in place of those that stored questions were read with."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from routeyard.pipelines.label.audit.questions import answer
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
    columns = queries.select(["source", "scorer"]).to_pydict()
    names = [scorers.get(*pair) for pair in zip(*columns.values(), strict=True)]
    counted: Counter[tuple[str, str, str]] = Counter(zip(*columns.values(), names, strict=True))
    changed = [ScorerChange(*key, n) for key, n in sorted(counted.items()) if key[1] != key[2]]
    at = queries.schema.get_field_index("scorer")
    return queries.set_column(at, queries.schema.field(at), pa.array(names, pa.string())), changed


def reworded(queries: pa.Table, stored: pa.Table) -> dict[str, int]:
    """Source → questions whose prompt is another one than that under which they were stored."""
    columns = ["query_id", "source", "prompt"]
    found = answer("reworded", queries=queries.select(columns), stored=stored.select(columns))
    return dict(zip(*found.to_pydict().values(), strict=True))
