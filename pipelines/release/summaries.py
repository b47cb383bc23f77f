"""Counts per query, per model and per task that the saved queries start from.

They are made block by block with the outcomes, and written to `numbered/` of a release as
Parquet and to the schema `numbered` of its database. `SQL` defines the same tables over labels
and responses: it serves releases made before these tables existed, and a test compares the
two.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.release.outcomes import Array, Block

_WORD = 64

_METERED = """
    SELECT {number} AS model_no, count(*) AS responses, avg(prompt_tokens) AS prompt_tokens,
           avg(completion_tokens) AS completion_tokens, sum(cost_usd) AS known_cost_usd,
           count(cost_usd) AS priced, median(latency_s) AS median_latency_s
    FROM {responses}"""

_IF_ANY = "HAVING count(*) > 0"

#: Summary → the same over `labels`, `responses`, `queries`, `models` with their numbers.
SQL: Mapping[str, str] = {
    "queries": "SELECT (row_number() OVER (ORDER BY query_id) - 1)::INTEGER AS query_no, * "
    "FROM {of}.queries",
    "models": "SELECT (row_number() OVER (ORDER BY model_id) - 1)::SMALLINT AS model_no, * "
    "FROM {of}.models",
    "labels": "SELECT query_no, model_no, score, correct, decided_by, contested, n_samples "
    "FROM {of}.labels JOIN numbered.queries USING (query_id) JOIN numbered.models USING (model_id)",
    "splits": "SELECT scheme, query_no, split FROM {of}.splits "
    "JOIN numbered.queries USING (query_id)",
    "priced": "SELECT query_no, model_no, count(*) AS n_responses, "
    "CASE WHEN count(cost_usd) = count(*) THEN sum(cost_usd) END AS cost_usd "
    "FROM {responses} JOIN numbered.queries USING (query_id) JOIN numbered.models USING (model_id) "
    "GROUP BY ALL",
    "per_query": """
        SELECT l.query_no, count(score)::INTEGER AS judged, coalesce(sum(score), 0) AS total,
               max(score) AS top, (count(*) FILTER (correct))::INTEGER AS solved_by,
               min(l.model_no) FILTER (correct) AS first_solver,
               (count(*) FILTER (contested))::INTEGER AS contested,
               coalesce(bool_or(score > 0 AND score < 1), false) AS graded
        FROM numbered.labels l GROUP BY ALL""",
    "cheapest": """
        WITH of_query AS (
            SELECT min((cost_usd, model_no)) AS best
            FROM numbered.labels JOIN numbered.priced USING (query_no, model_no)
            WHERE correct AND cost_usd IS NOT NULL GROUP BY query_no)
        SELECT best[2] AS model_no, count(*) AS queries, sum(best[1]) AS cost_usd
        FROM of_query GROUP BY ALL""",
    "per_task": """
        SELECT model_no, task, count(score) AS judged, coalesce(sum(score), 0) AS total
        FROM numbered.labels JOIN numbered.queries USING (query_no) GROUP BY ALL""",
    "leads": """
        SELECT model_no, task, sum(score - l.total / l.judged) AS lead, sum(top) AS top
        FROM (SELECT * FROM numbered.labels JOIN numbered.per_query USING (query_no)
              WHERE score IS NOT NULL) l
        JOIN numbered.queries USING (query_no) GROUP BY ALL""",
    "per_model": """
        SELECT model_no, count(*) AS answered, count(*) FILTER (correct) AS correct,
               count(cost_usd) AS priced, coalesce(sum(cost_usd), 0) AS cost_usd
        FROM numbered.labels JOIN numbered.priced USING (query_no, model_no) GROUP BY ALL""",
    "metered": _METERED.format(number="model_no", responses="{responses}")
    + " JOIN numbered.models USING (model_id) GROUP BY ALL",
    "bits": f"""
        SELECT model_no, (query_no // {_WORD})::INTEGER AS word,
               bit_or(1::UBIGINT << (query_no % {_WORD})) AS judged,
               coalesce(bit_or(1::UBIGINT << (query_no % {_WORD})) FILTER (score = 1), 0)
                   AS solved
        FROM numbered.labels JOIN numbered.per_query USING (query_no)
        WHERE score IS NOT NULL AND NOT graded GROUP BY ALL""",
}  # fmt: skip

#: The table `outcomes` over labels and responses, for a release made before it existed.
OUTCOMES = """
    WITH paid AS (
        SELECT query_id, model_id, count(*)::INTEGER AS n_responses,
               CASE WHEN count(cost_usd) = count(*) THEN sum(cost_usd) END AS cost_usd,
               CASE WHEN count(prompt_tokens) = count(*)
                    THEN sum(prompt_tokens) END::BIGINT AS prompt_tokens,
               CASE WHEN count(completion_tokens) = count(*)
                    THEN sum(completion_tokens) END::BIGINT AS completion_tokens,
               CASE WHEN count(reasoning_tokens) = count(*)
                    THEN sum(reasoning_tokens) END::BIGINT AS reasoning_tokens,
               CASE WHEN count(latency_s) = count(*)
                    THEN avg(latency_s) END::FLOAT AS latency_s
        FROM {responses} GROUP BY ALL)
    SELECT query_no, model_no, query_id, model_id, score, correct, decided_by, cost_usd,
           prompt_tokens, completion_tokens, reasoning_tokens, latency_s, n_samples,
           coalesce(n_responses, 0) AS n_responses, contested
    FROM labels FULL JOIN paid USING (query_id, model_id)
    JOIN (SELECT query_no, query_id FROM numbered.queries) USING (query_id)
    JOIN (SELECT model_no, model_id FROM numbered.models) USING (model_id)
    ORDER BY query_no, model_no"""


class Summaries:
    """Adds up blocks of outcomes; `tables` gives what `SQL` says, without `metered`."""

    def __init__(self, tasks: pa.ChunkedArray, models: int) -> None:
        encoded = tasks.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.unify_dictionaries().combine_chunks()
        self._task, self._names = encoded.indices.to_numpy(), encoded.dictionary
        self._models = models
        size = models * max(len(self._names), 1)
        self._judged, self._total = np.zeros(size, dtype=np.int64), np.zeros(size)
        self._rows = np.zeros(size, dtype=np.int64)
        self._lead, self._top = np.zeros(size), np.zeros(size)
        self._model = {
            "answered": np.zeros(models, dtype=np.int64),
            "correct": np.zeros(models, dtype=np.int64),
            "priced": np.zeros(models, dtype=np.int64),
            "cost_usd": np.zeros(models),
        }
        self._cheapest = {"queries": np.zeros(models, dtype=np.int64), "cost_usd": np.zeros(models)}
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
        size = len(self._total)
        self._total += np.bincount(code.ravel(), filled.ravel(), size)
        self._judged += np.bincount(code[judged], minlength=size)
        self._rows += np.bincount(code[block.labelled], minlength=size)
        middle = filled.sum(axis=1) / np.maximum(judged.sum(axis=1), 1)
        self._lead += np.bincount(code[judged], (filled - middle[:, None])[judged], size)
        top = np.broadcast_to(filled.max(axis=1, initial=0.0)[:, None], judged.shape)
        self._top += np.bincount(code[judged], top[judged], size)
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
        self._cheapest["queries"] += np.bincount(best[there], minlength=size)
        self._cheapest["cost_usd"] += np.bincount(best[there], usd[there], size)

    def tables(self) -> dict[str, pa.Table]:
        """`per_query`, `per_task`, `leads`, `per_model`, `cheapest`, `bits`, by number."""
        cells = np.flatnonzero(self._rows)
        names = max(len(self._names), 1)
        per_task = pa.table(
            {
                "model_no": pa.array((cells // names).astype(np.int16)),
                "task": self._names.take(pa.array(cells % names)),
                "judged": self._judged[cells],
                "total": self._total[cells],
            }
        )
        some = np.flatnonzero(self._judged)
        leads = pa.table(
            {
                "model_no": pa.array((some // names).astype(np.int16)),
                "task": self._names.take(pa.array(some % names)),
                "lead": self._lead[some],
                "top": self._top[some],
            }
        )
        there = np.flatnonzero(self._model["answered"])
        per_model: dict[str, Any] = {"model_no": there.astype(np.int16)}
        per_model |= {name: values[there] for name, values in self._model.items()}
        some = np.flatnonzero(self._cheapest["queries"])
        cheapest: dict[str, Any] = {"model_no": some.astype(np.int16)}
        cheapest |= {name: values[some] for name, values in self._cheapest.items()}
        empty = np.zeros((0, self._models))
        none = empty.astype(bool)
        nothing = Block(0, empty, empty, empty, none, none, empty, pa.table({}))
        first = _per_query(nothing, none, empty, np.zeros(0, dtype=bool))
        return {
            "per_query": pa.concat_tables([first, *self._per_query]),
            "per_task": per_task,
            "leads": leads,
            "per_model": pa.table(per_model),
            "cheapest": pa.table(cheapest),
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
