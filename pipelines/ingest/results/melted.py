"""Tables with a row per figure (question, model, metric, value) as a row per answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.ingest.results.roles import rank_of
from routeyard.pipelines.ingest.results.values import (
    FIGURE_NAMES,
    FIGURE_VALUES,
    ReadingNote,
    plain,
    some,
    texts,
)

#: Most kinds of figures that become columns.
_MOST = 40


def unmelted(table: pa.Table) -> tuple[pa.Table, list[ReadingNote]]:
    """The table with a column per metric, where its rows are figures of several kinds.

    Only where one column names figures, of which some are scores, and the other columns say of
    several rows that they are of one answer.
    """
    metric, value = _column(table, FIGURE_NAMES), _column(table, FIGURE_VALUES)
    if metric is None or value is None or not _are_figures(table, metric, value):
        return table, []
    rest = [n for n in table.column_names if n not in (metric, value) and n[:1] != "("]
    kinds = _kinds(table, metric)
    if not rest or set(rest) & set(kinds):
        return table, []
    rows = pa.table({name: texts(table.column(name)) for name in rest}).to_pandas()
    answer = rows.groupby(rest, dropna=False, sort=False).ngroup().to_numpy()
    first = np.unique(answer, return_index=True)[1]
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
