"""Verdicts laid out as a matrix: one row per response, one column per scorer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.schemas import VERDICTS
from routeyard.schemas.statuses import ANSWERLESS, STATUSES

#: Codes of `VerdictMatrix.outcome`; MISSING: no verdict was filed.
MISSING, CORRECT, INCORRECT, ABSTAIN, ERROR = range(5)
#: (query_id, model_id, sample): one response.
ResponseKey = tuple[str, str, int]
_OUTCOMES = pa.array(["correct", "incorrect", "abstain", "error"])


@dataclass(frozen=True)
class VerdictMatrix:
    """Current verdicts of every response that exists.

    Attributes:
        scorers: Scorer names, sorted; index into the first axis below.
        outcome: int8 (scorers + 1, responses), codes above; MISSING in the last row, which is of
            any scorer that is not among them.
        score: float64 (scorers + 1, responses), NaN where missing.
        conflict: bool (responses,), some current reading found several answers.
        pair: int64 (responses,), index into `query`, `query_ids` and `model_ids`.
        sample: int64 (responses,).
        status: int64 (responses,), index into `STATUSES`.
        query: int64 (pairs,), row of the `queries` table.
        model: int64 (pairs,), index of the model by name.
        query_ids, model_ids: Arrow (pairs,), sorted by both; every pair that has
            a response row, usable or not.
    """

    scorers: list[str]
    outcome: np.ndarray[Any, np.dtype[np.int8]]
    score: np.ndarray[Any, np.dtype[np.float64]]
    conflict: np.ndarray[Any, np.dtype[np.bool_]]
    pair: np.ndarray[Any, np.dtype[np.int64]]
    sample: np.ndarray[Any, np.dtype[np.int64]]
    status: np.ndarray[Any, np.dtype[np.int64]]
    model: np.ndarray[Any, np.dtype[np.int64]]
    query: np.ndarray[Any, np.dtype[np.int64]]
    query_ids: pa.Array
    model_ids: pa.Array


def lay_out(queries: pa.Table, responses: pa.Table, verdicts: pa.Table) -> VerdictMatrix:
    """Join verdicts to responses.

    Of several versions of one scorer the newest counts, by natural order of the
    version text. Verdicts of responses that are not there are left out, and so
    are verdicts of `error` responses: nothing was answered, so nothing was read.
    """
    query_ids = pc.unique(responses.column("query_id")).sort()
    model_ids = pc.unique(responses.column("model_id")).sort()
    samples = _ints(responses.column("sample"))
    width = int(max(samples.max(initial=0), _ints(verdicts.column("sample")).max(initial=0))) + 1
    models = max(len(model_ids), 1)

    pairs = _codes(responses, query_ids) * models + _codes(responses, model_ids, "model_id")
    unique, pair = np.unique(pairs, return_inverse=True)
    status = _codes(responses, pa.array(STATUSES), "status")
    exists = ~np.isin(status, [STATUSES.index(name) for name in ANSWERLESS])
    keys = (pairs * width + samples)[exists]
    order = np.argsort(keys, kind="stable")
    keys, pair = keys[order], pair[exists][order]

    names, outcome, score, conflict = _fill(verdicts, query_ids, model_ids, models, width, keys)
    rows = pc.index_in(query_ids, value_set=queries.column("query_id").combine_chunks())
    return VerdictMatrix(
        scorers=names,
        outcome=outcome,
        score=score,
        conflict=conflict,
        pair=pair,
        sample=keys % width,
        status=status[exists][order],
        model=unique % models,
        query=_ints(rows)[unique // models],
        query_ids=query_ids.take(pa.array(unique // models)),
        model_ids=model_ids.take(pa.array(unique % models)),
    )


def _fill(
    verdicts: pa.Table, query_ids: pa.Array, model_ids: pa.Array, models: int, width: int, keys: Any
) -> tuple[list[str], Any, Any, Any]:
    scorers = verdicts.column("scorer")
    names = sorted(pc.unique(scorers).to_pylist())
    column = _codes(verdicts, pa.array(names, pa.string()), "scorer")
    query, model = _codes(verdicts, query_ids), _codes(verdicts, model_ids, "model_id")
    key = (query * models + model) * width + _ints(verdicts.column("sample"))
    at = np.minimum(np.searchsorted(keys, key), max(len(keys) - 1, 0))
    known = (query >= 0) & (model >= 0) & (len(keys) > 0)
    known[known] = keys[at[known]] == key[known]

    # Oldest first, so that the newest version is written last.
    order = np.argsort(_age(verdicts), kind="stable")
    order = order[known[order]]
    shape = (len(names) + 1, len(keys))
    outcome = np.zeros(shape, np.int8)
    score = np.full(shape, np.nan)
    torn = np.zeros(shape, bool)
    where = (column[order], at[order])
    outcome[where] = _codes(verdicts, _OUTCOMES, "outcome")[order] + 1
    score[where] = verdicts.column("score").to_numpy()[order]
    torn[where] = np.asarray(verdicts.column("conflict"))[order]
    return names, outcome, score, torn.any(axis=0)


def keys(table: pa.Table) -> list[ResponseKey]:
    """(query_id, model_id, sample) of each row."""
    columns = (table.column(name).to_pylist() for name in ("query_id", "model_id", "sample"))
    return list(zip(*columns, strict=True))


def with_text(responses: pa.Table) -> pa.Table:
    """The responses that can be judged: somebody answered, and the text is there."""
    answerless = pc.is_in(responses.column("status"), value_set=pa.array(ANSWERLESS))
    return responses.filter(pc.and_not(pc.is_valid(responses.column("text")), answerless))


def newest(verdicts: pa.Table) -> pa.Table:
    """The newest version of each scorer's verdict on each response; order is kept."""
    return _last(verdicts, ["query_id", "model_id", "sample", "scorer"], _age(verdicts))


def add(verdicts: pa.Table, more: pa.Table) -> pa.Table:
    """Both, where a verdict under the same key is replaced by the later one.

    Only an `error` is ever replaced that way: a scorer's decision has its version
    in the key, and its ledger answers the same again.
    """
    if not more.num_rows:
        return verdicts
    return VERDICTS.check(_last(pa.concat_tables([verdicts, more]), list(VERDICTS.key), 0))


def _last(table: pa.Table, key: list[str], age: Any) -> pa.Table:
    """Of rows with one key the one of the highest age, the last of several; order is kept."""
    n = table.num_rows
    ranked = table.select(key).append_column("rank", pa.array(age * n + np.arange(n)))
    best = ranked.group_by(key).aggregate([("rank", "max")]).column("rank_max").to_numpy()
    return table.take(pa.array(np.sort(best % max(n, 1))))


def natural(version: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key under which `1.10` is newer than `1.9`."""
    return tuple(
        (1, int(part[:18]), part) if part.isdigit() and part.isascii() else (0, 0, part)
        for part in re.split(r"([0-9]+)", version)
        if part
    )


def _age(verdicts: pa.Table) -> Any:
    versions = pc.unique(verdicts.column("scorer_version")).to_pylist()
    return _codes(verdicts, pa.array(sorted(versions, key=natural), pa.string()), "scorer_version")


def _codes(table: pa.Table, among: pa.Array, column: str = "query_id") -> Any:
    return _ints(pc.index_in(table.column(column), value_set=among))


def _ints(values: Any) -> Any:
    """int64 array, -1 where null."""
    filled = pc.fill_null(values.cast(pa.int64()), -1)
    return np.asarray(filled, dtype=np.int64)
