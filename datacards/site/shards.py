"""Questions in shards: an index to search, and every model's answer, as scripts that assign data.

A page from disk may not fetch, but it may load a script from its own folder. Each shard is one
call with compressed JSON in base64, so no character of a question or an answer can be read as
markup or code.
"""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from zlib_ng.gzip_ng import compress

from routeyard.datacards import sql_of
from routeyard.datacards.site.release import Ask, SiteRelease
from routeyard.schemas.release import WITHHELD

# Questions with what each model said of them, as JSON that DuckDB writes.
#
# One statement for the site and for the look-up of a report: 350,000 answers are cut around
# what was read, put to their verdicts and questions, and written without a Python object each.

#: Questions whose answers are read together: answers are sorted by model, so each read passes over
#: more.
READ = 10_000
#: Questions put together at once.
AT_ONCE = 2_000

_ANSWERS_SQL = sql_of("answers")
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
    verdicts = _ANSWERS_SQL["verdicts"] if "verdicts" in has else _ANSWERS_SQL["no_verdicts"]
    with duckdb.connect() as connection:
        connection.register("places", places)
        for first in range(0, len(ids), READ):
            near = ids[first : first + READ]
            answers = ask(
                _ANSWERS_SQL["responses" if "responses" in has else "no_responses"] + _of(near)
            )
            for start in range(0, len(near), AT_ONCE):
                within = near[start : start + AT_ONCE]
                connection.register("answers", _part(answers, within))
                connection.register("cells", ask(_ANSWERS_SQL["cells"] + _of(within)))
                sql = verdicts.format(read=longest_read)
                connection.register("verdicts", ask(sql + _of(within)))
                asked = _ANSWERS_SQL["questions"].format(prompt=longest_prompt, **UNSAID)
                connection.register("questions", ask(asked + _of(within)))
                if "images" in has:
                    connection.register("images", ask(_ANSWERS_SQL["images"] + _of(within)))
                    shown = connection.sql(_ANSWERS_SQL["questions_with_images"]).to_arrow_table()
                    connection.register("questions", shown)
                table = connection.sql(
                    _ANSWERS_SQL["told"], params={"longest": longest}
                ).to_arrow_table()
                heads = connection.sql(_ANSWERS_SQL["heads"]).to_arrow_table()
                yield from _joined(heads, table)


def _joined(heads: pa.Table, table: pa.Table) -> Iterator[str]:
    """The JSON texts of questions, cells, answers and verdicts, put into each other."""
    cells: dict[str, list[str]] = defaultdict(list)
    pair: tuple[str, int] | None = None
    pieces: list[str] = []
    at: int | None = None
    end = ""
    for query, place, sample, cell, answer, verdict in zip(
        *(column.to_pylist() for column in table.columns), strict=True
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


#: Questions per index shard and per answers shard.
INDEXED, ANSWERED = 5_000, 40
#: Questions in one site, which a browser has to search: the first by id, which is a hash.
MOST = 100_000
#: Pairs of question and model in one site, whose outcomes the list of questions is searched by.
MOST_PAIRS = 5_000_000
#: Characters of answers in one site, the longest answer, and the longest question.
BUDGET, LONGEST, LONGEST_PROMPT = 1_500_000_000, 6_000, 20_000
EXCERPT = 180

_SQL = sql_of("site")


def write_shards(book: SiteRelease, out: Path) -> dict[str, Any]:
    """Write `index-K.js` and `answers-K.js` into `out`; what the page must know of them."""
    out.mkdir(parents=True, exist_ok=True)
    models = [row["model_id"] for row in book.rows("SELECT model_id FROM models ORDER BY 1")]
    has = list(book.manifest.tables)
    columns, tasks = index(book.ask, models, has=has)
    ids = columns["id"]
    for k, start in enumerate(range(0, len(ids), INDEXED)):
        part = {name: column[start : start + INDEXED] for name, column in columns.items()}
        _write(out / f"index-{k}.js", "index", k, part)
    longest = min(LONGEST, max(400, BUDGET // max(1, len(ids) * max(1, len(models)))))
    result = questions(
        book.ask,
        ids,
        models,
        has=has,
        longest=longest,
        longest_prompt=LONGEST_PROMPT,
    )
    for k, batch in enumerate(batched(result, ANSWERED)):
        _write(out / f"answers-{k}.js", "answers", k, f"[{','.join(batch)}]")
    return {
        "models": models,
        "tasks": tasks,
        "questions": len(ids),
        "of": book.manifest.tables["queries"].rows,
        "indexed": INDEXED,
        "answered": ANSWERED,
        "longest": longest,
    }


def index(
    ask: Ask, models: Sequence[str], *, has: Sequence[str]
) -> tuple[dict[str, list[Any]], list[str]]:
    """Columns that the questions page searches, and the tasks that one of them counts through.

    `outcomes` has a sign for each model (1 right, 0 wrong, - no label), or null where there
    are too many.

    Args:
        ask: Answers one SQL statement over `queries`, `outcomes`, `models` and what `has` names.
    """
    group, join = "NULL", ""
    if "duplicates" in has:
        group = "d.group_id"
        join = (
            "LEFT JOIN (SELECT query_id, min(group_id) AS group_id FROM duplicates "
            "GROUP BY query_id) d USING (query_id)"
        )
    sql = _SQL["index"].format(most=MOST, excerpt=EXCERPT, group=group, join=join, **UNSAID)
    rows = ask(sql).to_pylist()
    outcomes: dict[str, str] = {}
    if len(rows) * len(models) <= MOST_PAIRS:
        each = ask(_SQL["each"].format(most=MOST)).to_pylist()
        outcomes = {row["query_id"]: row["outcomes"] for row in each}
    tasks = sorted({str(row["task"]) for row in rows})
    groups = sorted({row["duplicate_group"] for row in rows if row["duplicate_group"]})
    task_no = {task: k for k, task in enumerate(tasks)}
    group_no = {group: k for k, group in enumerate(groups)}
    columns = {
        "id": [row["query_id"] for row in rows],
        "task": [task_no[str(row["task"])] for row in rows],
        "text": [" ".join((row["text"] or "").split()) for row in rows],
        **{name: [row[name] for row in rows] for name in ("judged", "total", "contested")},
        "missing": [len(models) - row["judged"] for row in rows],
        "group": [group_no.get(row["duplicate_group"]) for row in rows],
        "outcomes": [outcomes.get(row["query_id"]) for row in rows],
    }
    return columns, tasks


def batched(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """Lists of `size`, the last one shorter (`itertools.batched` needs Python 3.12)."""
    rest = iter(texts)
    while batch := list(islice(rest, size)):
        yield batch


def packed(content: Any) -> str:
    """JSON, compressed, as base64 text. A fixed mtime keeps equal contents equal.

    Args:
        content: JSON text, or what JSON can hold.
    """
    text = (
        content
        if isinstance(content, str)
        else json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    )
    # Level 5: a third of the time of 9 for 2 % more bytes.
    pressed = compress(text.encode("utf-8", "replace"), compresslevel=5, mtime=0)
    return base64.b64encode(pressed).decode()


def _write(path: Path, kind: str, number: int, content: Any) -> None:
    path.write_text(f'routeyard("{kind}",{number},"{packed(content)}");\n', encoding="ascii")
