"""Tables with a row per figure (question, model, metric, value) as a row per answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.ingest.results.roles import rank_of
from routeyard.pipelines.ingest.results.values import ReadingNote, plain, some

#: Names of the column that names a figure, and of the column that holds it.
_METRIC = ("metric", "metricname", "measure", "variable", "scorename", "name", "key", "field")
_VALUE = ("value", "val", "metricvalue", "score", "result")
_MOST = 40


def unmelted(table: pa.Table) -> tuple[pa.Table, list[ReadingNote]]:
    """The table with a column per metric, where its rows are figures of several kinds.

    Only where one column names figures, of which some are scores, and the other columns say of
    several rows that they are of one answer.
    """
    metric, value = _column(table, _METRIC), _column(table, _VALUE)
    if metric is None or value is None or not _are_figures(table, metric, value):
        return table, []
    rest = [n for n in table.column_names if n not in (metric, value) and n[:1] != "("]
    kinds = _kinds(table, metric)
    if not rest or set(rest) & set(kinds):
        return table, []
    answer, first = _coded(table, rest)
    cell = table.column(metric).combine_chunks().dictionary_encode()
    code = np.asarray(cell.indices.fill_null(-1))
    pairs = np.unique(answer * (len(kinds) + 1) + code)
    if len(pairs) < table.num_rows or table.num_rows < 1.5 * len(first):
        return table, []
    made = table.select([n for n in table.column_names if n not in (metric, value)]).take(first)
    for number, kind in enumerate(cell.dictionary.to_pylist()):
        own = np.flatnonzero(code == number)
        place = np.full(len(first), -1)
        place[answer[own]] = own
        made = made.append_column(kind, table.column(value).take(pa.array(place, mask=place < 0)))
    says = f"each row is one figure: the {len(kinds)} values of {metric!r} are taken for columns"
    return made, [ReadingNote("choice", says, 0, (), "score")]


def _kinds(table: pa.Table, metric: str) -> list[str]:
    return [one for one in pc.unique(table.column(metric)).to_pylist() if one]


def _are_figures(table: pa.Table, metric: str, value: str) -> bool:
    """Whether a column names figures of answers, scores among them, and another holds them."""
    if metric == value or not pa.types.is_string(table.column(metric).type):
        return False
    kinds = _kinds(table, metric)
    scores = any(rank_of(kind, "score") is not None for kind in kinds)
    return scores and 2 <= len(kinds) <= _MOST and bool(some(table.column(value), 1))


def _column(table: pa.Table, names: tuple[str, ...]) -> str | None:
    return next((n for want in names for n in table.column_names if plain(n) == want), None)


def _coded(table: pa.Table, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """(rows,) number of the answer that a row is of, in order of the file; a row of each."""
    code = np.zeros(table.num_rows, np.int64)
    for name in names:
        own = table.column(name).cast(pa.string()).combine_chunks().dictionary_encode()
        values = np.asarray(own.indices.fill_null(len(own.dictionary)), np.int64)
        code = np.unique(code * (len(own.dictionary) + 1) + values, return_inverse=True)[1]
    found, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(found), np.int64)
    place[order] = np.arange(len(found))
    return place[inverse], first[order]
