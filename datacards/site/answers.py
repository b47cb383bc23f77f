"""Questions with what each model said of them, as JSON that DuckDB writes.

One statement for the site and for the look-up of a report: 350,000 answers are cut around
what was read, put to their verdicts and questions, and written without a Python object each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.datacards.sql import sql_of
from routeyard.schemas.withheld import WITHHELD

#: Questions whose answers are read together: answers are sorted by model, so each read passes over
#: more.
READ = 10_000
#: Questions put together at once.
AT_ONCE = 2_000

_SQL = sql_of("answers")
#: What is shown for a text that a release does not hold: the question's name in its source.
UNSAID = {
    "withheld": WITHHELD,
    "instead": "source || ' ' || source_id || ': its text is not in this release'",
}


def questions(
    ask: Callable[[str], pa.Table],
    ids: Sequence[str],
    models: Sequence[str],
    *,
    has: Sequence[str],
    longest: int,
    longest_prompt: int,
    longest_read: int = 300,
) -> Iterator[str]:
    """The JSON text of each question: its prompt, references, and a cell per model.

    Answers are cut around the first span that a verdict read, else their end is kept, where an
    answer commits itself. Offsets count characters, which a browser counts otherwise: so the
    text travels in pieces (before, span, after) with the number of characters left out.

    Args:
        ask: Answers one SQL statement over `queries`, `outcomes` and what `has` names.
        ids: Questions, ascending and without a gap among those of the release.
        models: What cells name by their places here.
        has: Which of `responses`, `verdicts` and `images` there are.
        longest: Characters of an answer that are kept; likewise of a prompt and of what a
            verdict read.
    """
    import duckdb

    places = pa.table({"model_id": list(models), "place": range(len(models))})
    verdicts = _SQL["verdicts"] if "verdicts" in has else _SQL["no_verdicts"]
    with duckdb.connect() as connection:
        connection.register("places", places)
        for first in range(0, len(ids), READ):
            near = ids[first : first + READ]
            answers = ask(_SQL["responses" if "responses" in has else "no_responses"] + _of(near))
            for start in range(0, len(near), AT_ONCE):
                within = near[start : start + AT_ONCE]
                connection.register("answers", _part(answers, within))
                connection.register("cells", ask(_SQL["cells"] + _of(within)))
                told = verdicts.format(read=longest_read)
                connection.register("verdicts", ask(told + _of(within)))
                asked = _SQL["questions"].format(prompt=longest_prompt, **UNSAID)
                connection.register("questions", ask(asked + _of(within)))
                if "images" in has:
                    connection.register("images", ask(_SQL["images"] + _of(within)))
                    shown = connection.sql(_SQL["questions_with_images"]).to_arrow_table()
                    connection.register("questions", shown)
                told = connection.sql(_SQL["told"], params={"longest": longest}).to_arrow_table()
                heads = connection.sql(_SQL["heads"]).to_arrow_table()
                yield from _joined(heads, told)


def _joined(heads: pa.Table, told: pa.Table) -> Iterator[str]:
    """The JSON texts of questions, cells, answers and verdicts, put into each other."""
    cells: dict[str, list[str]] = defaultdict(list)
    pair: tuple[str, int] | None = None
    pieces: list[str] = []
    at: int | None = None
    end = ""
    for query, place, sample, cell, answer, verdict in zip(
        *(column.to_pylist() for column in told.columns), strict=True
    ):
        if (query, place) != pair:
            pieces.append(end)
            pair, at, pieces, end = (query, place), None, cells[query], "]}"
            pieces.append(f'{"," if pieces else ""}{cell[:-1]},"samples":[')
        if answer is not None and (sample != at or end == "]}"):
            pieces.append(f'{"" if at is None else "]},"}{answer[:-1]},"verdicts":[')
            at, end = sample, "]}]}"
        elif verdict is not None:
            pieces.append(",")
        if verdict is not None:
            pieces.append(verdict)
    pieces.append(end)
    for query, head in zip(*(column.to_pylist() for column in heads.columns), strict=True):
        yield f'{head[:-1]},"cells":[{"".join(cells[query])}]}}'


def _of(ids: Sequence[str]) -> str:
    first, last = (text.replace("'", "''") for text in (ids[0], ids[-1]))
    return f" WHERE query_id BETWEEN '{first}' AND '{last}'"


def _part(table: pa.Table, ids: Sequence[str]) -> pa.Table:
    """Rows of some questions that follow each other."""
    column = table.column("query_id")
    return table.filter(pc.and_(pc.greater_equal(column, ids[0]), pc.less_equal(column, ids[-1])))
