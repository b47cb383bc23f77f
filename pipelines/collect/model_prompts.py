"""What one model is asked of each query: the query's own prompt, or the model's frame around it.

A frame makes a way of asking a member of the pool: one model with worked examples
and the same model without are two lines of it, with answers, costs and labels of
their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.calls.request import Message
from routeyard.pipelines.errors import RecipeError
from routeyard.pipelines.mapping.fields import compile_field
from routeyard.pipelines.mapping.texts import text_of
from routeyard.schemas.recipe.collect import Collect
from routeyard.schemas.recipe.pool import Model

#: Columns of `queries` that a frame may use; none of them gives the reference away.
SHOWN = ("prompt", "question", "choices", "task", "domain", "source", "metadata")


class ModelPrompts:
    """The messages of one model's requests, by row of the queries."""

    def __init__(self, queries: pa.Table, model: Model, collect: Collect) -> None:
        self.samples = model.samples or collect.samples
        self.system = collect.system if model.system is None else model.system or None
        self._prompts = queries.column("prompt")
        self._frame: Callable[[Mapping[str, Any]], Any] | None = None
        if model.prompt is not None:
            self._where, self._words = f"pool.models, {model.model_id}", model.prompt
            self._frame = compile_field(model.prompt, where=f"{self._where}, prompt")
            self._rows = queries.select([n for n in SHOWN if n in queries.column_names])

    def prompt(self, row: int) -> str:
        """The user message of the query in that row.

        Raises:
            RecipeError: the frame names a column that queries do not have, or gives no text.
        """
        if self._frame is None:
            return str(self._prompts[row].as_py())
        shown = {name: self._rows.column(name)[row].as_py() for name in self._rows.column_names}
        if isinstance(shown.get("metadata"), str):
            shown["metadata"] = json.loads(shown["metadata"])
        found = text_of(
            self._frame(shown), self._words, "prompt", self._where, within="", error=RecipeError
        )
        if not found.strip():
            raise RecipeError(
                f"the mapping {self._words!r} gives no prompt for the question "
                f"{shown.get('question', shown.get('prompt', ''))[:60]!r}",
                where=self._where,
                next_step='give those questions another: "{{ … or prompt }}"',
            )
        return found

    def prompts(self, rows: Any) -> pa.ChunkedArray:
        """The user messages of the queries in `rows`, int32 [q]."""
        if self._frame is None:
            return self._prompts.take(pa.array(rows))
        return pa.chunked_array([pa.array([self.prompt(int(row)) for row in rows], pa.string())])

    def lengths(self, rows: Any) -> Any:
        """Characters of the queries' own prompts, float64 [q]: what earlier calls are known by."""
        lengths = pc.utf8_length(self._prompts.take(pa.array(rows)))
        return np.asarray(lengths, dtype=np.float64)

    def messages(self, row: int) -> list[Message]:
        """The messages that ask the query in that row."""
        asked: list[Message] = [{"role": "user", "content": self.prompt(row)}]
        return [{"role": "system", "content": self.system}, *asked] if self.system else asked
