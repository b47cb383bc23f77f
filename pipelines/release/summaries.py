"""Counts per query, per model and per task that the saved queries start from.

They are made block by block with the outcomes, and written to `numbered/` of a release as
Parquet and to the schema `numbered` of its database. `SQL` defines the same tables over labels
and responses; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from routeyard.pipelines.release.outcomes import Array, Block
from routeyard.pipelines.release.sql import sql_of

_WORD = 64

_SQL = sql_of("summaries")
_METERED = _SQL.pop("metered")
#: Summary → the same over `labels`, `responses`, `queries`, `models` with their numbers.
SQL: Mapping[str, str] = {
    **_SQL,
    "metered": _METERED.format(number="model_no", responses="{responses}")
    + " JOIN numbered.models USING (model_id) GROUP BY ALL",
}
_IF_ANY = "HAVING count(*) > 0"


class Summaries:
    """Adds up blocks of outcomes; `tables` gives what `SQL` says, without `metered`."""

    def __init__(self, tasks: pa.ChunkedArray, models: int) -> None:
        encoded = tasks.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.unify_dictionaries().combine_chunks()
        self._task, self._names = encoded.indices.to_numpy(), encoded.dictionary
        self._models = models
        size = models * max(len(self._names), 1)
        self._of_task: dict[str, Array] = {
            name: np.zeros(size) for name in ("total", "lead", "top")
        }
        self._of_task |= {name: np.zeros(size, dtype=np.int64) for name in ("rows", "judged")}
        counts = ("answered", "correct", "priced", "queries")
        self._model: dict[str, Array] = {name: np.zeros(models, dtype=np.int64) for name in counts}
        self._model |= {name: np.zeros(models) for name in ("cost_usd", "cheapest_usd")}
        self._per_query: list[pa.Table] = []
        self._bits: list[pa.Table] = []

    def add(self, block: Block) -> None:
        judged = ~np.isnan(block.score)
        filled = np.where(judged, block.score, 0.0)
        graded = np.any((filled > 0) & (filled < 1), axis=1)
        self._per_query.append(_per_query(block, judged, filled, graded))
        plain = judged & ~graded[:, None]
        self._bits.append(_bits(block.first, plain, plain & (filled == 1)))
        task = self._task[block.first : block.first + len(filled)]
        code = task[:, None] + np.arange(self._models) * len(self._names)
        of_task, size = self._of_task, len(self._of_task["total"])
        of_task["total"] += np.bincount(code.ravel(), filled.ravel(), size)
        of_task["judged"] += np.bincount(code[judged], minlength=size)
        of_task["rows"] += np.bincount(code[block.labelled], minlength=size)
        middle = filled.sum(axis=1) / np.maximum(judged.sum(axis=1), 1)
        of_task["lead"] += np.bincount(code[judged], (filled - middle[:, None])[judged], size)
        top = np.broadcast_to(filled.max(axis=1, initial=0.0)[:, None], judged.shape)
        of_task["top"] += np.bincount(code[judged], top[judged], size)
        both = block.labelled & block.answered
        known = both & ~np.isnan(block.cost_usd)
        self._model["answered"] += both.sum(axis=0)
        self._model["correct"] += (both & (block.correct > 0)).sum(axis=0)
        self._model["priced"] += known.sum(axis=0)
        self._model["cost_usd"] += np.where(known, block.cost_usd, 0.0).sum(axis=0)
        self._add_cheapest(np.where(known & (block.correct > 0), block.cost_usd, np.inf))

    def _add_cheapest(self, cost: Array) -> None:
        """`cost` (queries, models), infinite where a model is not correct or its cost unknown."""
        # The first of equal costs is that of the smaller model id, as in the plain query.
        best = cost.argmin(axis=1)
        usd = np.take_along_axis(cost, best[:, None], axis=1)[:, 0]
        there = np.isfinite(usd)
        size = self._models
        self._model["queries"] += np.bincount(best[there], minlength=size)
        self._model["cheapest_usd"] += np.bincount(best[there], usd[there], size)

    def tables(self) -> dict[str, pa.Table]:
        """`per_query`, `per_task`, `leads`, `per_model`, `cheapest`, `bits`, by number."""
        names = max(len(self._names), 1)
        cells, judged = (np.flatnonzero(self._of_task[name]) for name in ("rows", "judged"))

        def by_task(at: Array, *columns: str) -> pa.Table:
            task = self._names.take(pa.array(at % names))
            sums = {name: self._of_task[name][at] for name in columns}
            return pa.table({"model_no": (at // names).astype(np.int16), "task": task, **sums})

        def by_model(at: Array, **columns: str) -> pa.Table:
            counted = {name: self._model[own][at] for name, own in columns.items()}
            return pa.table({"model_no": at.astype(np.int16), **counted})

        same = {name: name for name in ("answered", "correct", "priced", "cost_usd")}
        empty = np.zeros((0, self._models))
        none = empty.astype(bool)
        nothing = Block(0, empty, empty, empty, none, none, empty, lambda: iter(()))
        first = _per_query(nothing, none, empty, np.zeros(0, dtype=bool))
        return {
            "per_query": pa.concat_tables([first, *self._per_query]),
            "per_task": by_task(cells, "judged", "total"),
            "leads": by_task(judged, "lead", "top"),
            "per_model": by_model(np.flatnonzero(self._model["answered"]), **same),
            "cheapest": by_model(
                np.flatnonzero(self._model["queries"]), queries="queries", cost_usd="cheapest_usd"
            ),
            "bits": pa.concat_tables([_bits(0, none, none), *self._bits]),
        }


def metered(responses: Path | None, models: pa.Array) -> pa.Table:
    """Tokens, cost and latency per model, one model at a time (a median needs all its rows).

    Args:
        models: Ids of the models in order of their numbers.
    """
    import duckdb

    empty = "(SELECT NULL::BIGINT AS prompt_tokens, NULL::BIGINT AS completion_tokens, "
    empty += "NULL::DOUBLE AS cost_usd, NULL::DOUBLE AS latency_s, '' AS model_id)"
    parts = []
    # One thread: the last digit of a sum does not depend on the machine.
    with duckdb.connect(config={"threads": 1, "memory_limit": "2GB"}) as connection:
        name = "responses"
        if responses is not None:
            connection.from_parquet(str(responses)).create_view(name)
        for number, model in enumerate(models.to_pylist() if responses is not None else []):
            where = "WHERE model_id = '" + model.replace("'", "''") + "'"
            body = _METERED.format(number=f"{number}::SMALLINT", responses=name)
            parts.append(connection.sql(f"{body} {where} {_IF_ANY}").to_arrow_table())
        nothing = _METERED.format(number="0::SMALLINT", responses=empty)
        parts.append(connection.sql(f"{nothing} WHERE false {_IF_ANY}").to_arrow_table())
    return pa.concat_tables(parts)


def _per_query(block: Block, judged: Array, filled: Array, graded: Array) -> pa.Table:
    right = block.correct > 0
    solved_by = right.sum(axis=1, dtype=np.int32)
    here = np.flatnonzero(block.labelled.any(axis=1))
    n_judged = judged.sum(axis=1, dtype=np.int32)
    top = np.where(judged, filled, -1.0).max(axis=1, initial=-1.0)
    table = pa.table(
        {
            "query_no": pa.array(np.arange(block.first, block.first + len(filled), dtype=np.int32)),
            "judged": n_judged,
            "total": filled.sum(axis=1),
            "top": pa.array(top, mask=n_judged == 0),
            "solved_by": solved_by,
            "first_solver": pa.array(
                right.argmax(axis=1).astype(np.int16) if len(right) else np.zeros(0, np.int16),
                mask=solved_by == 0,
            ),
            "contested": (block.contested > 0).sum(axis=1, dtype=np.int32),
            "graded": graded,
        }
    )
    return table if len(here) == table.num_rows else table.take(pa.array(here))


def _bits(first: int, judged: Array, solved: Array) -> pa.Table:
    """64 queries as one word per model; words without a judged query are left out."""
    packed = [_pack(judged), _pack(solved)]
    word, model = np.nonzero(packed[0])
    return pa.table(
        {
            "model_no": model.astype(np.int16),
            "word": (word + first // _WORD).astype(np.int32),
            "judged": packed[0][word, model],
            "solved": packed[1][word, model],
        }
    )


def _pack(flags: Array) -> Array:
    """(queries, models) flags as (words, models) of 64 bits, query 0 lowest."""
    n, models = flags.shape
    padded = np.zeros((-(-n // _WORD) * _WORD, models), dtype=bool)
    padded[:n] = flags
    bytes_ = np.packbits(padded.T, axis=1, bitorder="little")
    return np.ascontiguousarray(np.ascontiguousarray(bytes_).view("<u8").T)
