"""Questions in shards: an index to search, and every model's answer, as scripts that assign data.

A page from disk may not fetch, but it may load a script from its own folder. Each shard is one
call with compressed JSON in base64, so no character of a question or an answer can be read as
markup or code.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.datacards.site.release import SiteRelease
from routeyard.datacards.sql import sql_of

#: Questions per index shard and per answers shard; questions put together at once.
INDEXED, ANSWERED, AT_ONCE = 5_000, 40, 2_000
#: Questions whose answers are read together: they lie by model, so each read passes over more.
READ = 10_000
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
    index = _index(book)
    tasks = sorted({row["task"] for row in index})
    groups = sorted({row["duplicate_group"] for row in index if row["duplicate_group"]})
    if len(index) * len(models) <= MOST_PAIRS:
        told = {
            row["query_id"]: row["outcomes"] for row in book.rows(_SQL["each"].format(most=MOST))
        }
        index = [{**row, "outcomes": told.get(row["query_id"])} for row in index]
    columns = index_columns(index, tasks, groups, len(models))
    for k, start in enumerate(range(0, len(index), INDEXED)):
        part = {name: column[start : start + INDEXED] for name, column in columns.items()}
        _write(out / f"index-{k}.js", "index", k, part)
    longest = min(LONGEST, max(400, BUDGET // max(1, len(index) * max(1, len(models)))))
    ids = [row["query_id"] for row in index]
    place = {model: k for k, model in enumerate(models)}
    batch: list[dict[str, Any]] = []
    shards = 0
    for question in _questions(book, ids, place, longest):
        batch.append(question)
        if len(batch) == ANSWERED:
            _write(out / f"answers-{shards}.js", "answers", shards, batch)
            batch, shards = [], shards + 1
    if batch:
        _write(out / f"answers-{shards}.js", "answers", shards, batch)
    return {
        "models": models,
        "tasks": tasks,
        "questions": len(index),
        "of": book.manifest.tables["queries"].rows,
        "indexed": INDEXED,
        "answered": ANSWERED,
        "longest": longest,
    }


def index_columns(
    rows: Sequence[Mapping[str, Any]], tasks: Sequence[str], groups: Sequence[str], models: int
) -> dict[str, list[Any]]:
    """Columns that the questions page searches; tasks and groups by their places.

    Args:
        rows: query_id, task, text, judged, total, contested, duplicate_group and, if known,
            outcomes: a sign for each model, 1 right, 0 wrong, - no label.
        models: How many models the release has.
    """
    task_no = {task: k for k, task in enumerate(tasks)}
    group_no = {group: k for k, group in enumerate(groups)}
    return {
        "id": [row["query_id"] for row in rows],
        "task": [task_no[str(row["task"])] for row in rows],
        "text": [" ".join((row["text"] or "").split()) for row in rows],
        **{name: [row[name] for row in rows] for name in ("judged", "total", "contested")},
        "missing": [models - row["judged"] for row in rows],
        "group": [group_no.get(row["duplicate_group"]) for row in rows],
        "outcomes": [row.get("outcomes") for row in rows],
    }


def _index(book: SiteRelease) -> list[dict[str, Any]]:
    group, join = "NULL", ""
    if "duplicates" in book.manifest.tables:
        group = "d.group_id"
        join = (
            "LEFT JOIN (SELECT query_id, min(group_id) AS group_id FROM duplicates "
            "GROUP BY query_id) d USING (query_id)"
        )
    return book.rows(_SQL["index"].format(most=MOST, excerpt=EXCERPT, group=group, join=join))


def _questions(
    book: SiteRelease, ids: Sequence[str], place: dict[str, int], longest: int
) -> Iterator[dict[str, Any]]:
    for first in range(0, len(ids), READ):
        near = ids[first : first + READ]
        answers = _answers(book, near)
        for start in range(0, len(near), AT_ONCE):
            yield from _together(book, near[start : start + AT_ONCE], answers, place, longest)


def _together(
    book: SiteRelease,
    ids: Sequence[str],
    answers: pa.Table | None,
    place: dict[str, int],
    longest: int,
) -> Iterator[dict[str, Any]]:
    """Questions with what each model said of them."""
    within = _within(ids)
    cells: dict[tuple[str, str], dict[str, Any]] = {}
    for row in book.rows(_SQL["cells"].format(within=within)):
        cells[row["query_id"], row["model_id"]] = {
            "score": row["score"],
            "correct": row["correct"],
            "by": row["decided_by"],
            "contested": row["contested"],
            "cost": row["cost_usd"],
            "in": row["prompt_tokens"],
            "out": row["completion_tokens"],
            "latency": None if row["latency_s"] is None else round(row["latency_s"], 3),
            "samples": {},
        }
    if answers is not None:
        _add(cells, _part(answers, ids), _verdicts(book, within), longest)
    by_query: dict[str, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    for (query, model), cell in cells.items():
        if model in place:
            cell["samples"] = [cell["samples"][k] for k in sorted(cell["samples"])]
            by_query[query].append((place[model], cell))
    for row in book.rows(_SQL["questions"].format(longest=LONGEST_PROMPT, within=within)):
        row["cells"] = [
            {"model": k, **cell} for k, cell in sorted(by_query[row["query_id"]], key=_first)
        ]
        yield row


def _within(ids: Sequence[str]) -> str:
    return f"query_id BETWEEN {_quoted(ids[0])} AND {_quoted(ids[-1])}"


def _part(table: pa.Table, ids: Sequence[str]) -> pa.Table:
    """Rows of some questions that follow each other."""
    column = table.column("query_id")
    return table.filter(pc.and_(pc.greater_equal(column, ids[0]), pc.less_equal(column, ids[-1])))


def _first(pair: tuple[int, dict[str, Any]]) -> int:
    return pair[0]


def _verdicts(book: SiteRelease, within: str) -> dict[tuple[str, str, int], list[dict[str, Any]]]:
    found: dict[tuple[str, str, int], list[dict[str, Any]]] = defaultdict(list)
    if "verdicts" in book.manifest.tables:
        for row in book.rows(_SQL["verdicts"].format(within=within)):
            key = (row.pop("query_id"), row.pop("model_id"), row.pop("sample"))
            found[key].append(row)
    return found


def _answers(book: SiteRelease, ids: Sequence[str]) -> pa.Table | None:
    if "responses" not in book.manifest.tables:
        return None
    return book.ask(
        f"SELECT query_id, model_id, sample, status, text FROM responses WHERE {_within(ids)}"
    )


def _add(
    cells: dict[tuple[str, str], dict[str, Any]],
    table: pa.Table,
    verdicts: dict[tuple[str, str, int], list[dict[str, Any]]],
    longest: int,
) -> None:
    """Put each answer into its cell."""
    for batch in table.to_batches():
        for row in batch.to_pylist():
            cell = cells.get((row["query_id"], row["model_id"]))
            if cell is None:
                continue
            told = verdicts.get((row["query_id"], row["model_id"], row["sample"]), [])
            answer = sample(row["status"], row["text"], told, longest)
            cell["samples"][row["sample"]] = answer


def sample(
    status: str, text: str | None, verdicts: Sequence[Mapping[str, Any]], longest: int
) -> dict[str, Any]:
    """One answer with its verdicts, cut around the first span that one of them read."""
    spans = ((one["span_start"], one["span_end"]) for one in verdicts)
    span = next((one for one in spans if one[0] is not None), None)
    told = [{k: v for k, v in one.items() if not k.startswith("span_")} for one in verdicts]
    return {"status": status, **pieces(text, span, longest), "verdicts": told}


def pieces(text: str | None, span: tuple[int, int] | None, longest: int) -> dict[str, Any]:
    """An answer around the span that was read: before, span, after, and characters left out.

    Offsets count characters, which a browser counts otherwise: so the text travels cut.
    """
    if text is None:
        return {"text": None}
    start, end = span if span is not None and 0 <= span[0] <= span[1] <= len(text) else (None, None)
    first, last = 0, len(text)
    if len(text) > longest:
        # What was read, or else the end: there an answer commits itself.
        centre = end if end is not None else len(text)
        last = min(len(text), max(centre + longest // 5, longest))
        first = max(0, last - longest)
        if start is not None:
            first = min(first, start)
    found: dict[str, Any] = (
        {"cut": [first, len(text) - last]} if (first, last) != (0, len(text)) else {}
    )
    if start is None:
        return {"text": [text[first:last]], **found}
    return {"text": [text[first:start], text[start:end], text[end:last]], **found}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def packed(content: Any) -> str:
    """JSON, compressed, as base64 text. A fixed mtime keeps equal contents equal."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    # Level 5: half the time of 9 for 2 % more bytes.
    pressed = gzip.compress(text.encode("utf-8", "replace"), compresslevel=5, mtime=0)
    return base64.b64encode(pressed).decode()


def _write(path: Path, kind: str, number: int, content: Any) -> None:
    path.write_text(f'routeyard("{kind}",{number},"{packed(content)}");\n', encoding="ascii")
