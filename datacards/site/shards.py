"""Questions in shards: an index to search, and every model's answer, as scripts that assign data.

A page from disk may not fetch, but it may load a script from its own folder. Each shard is one
call with compressed JSON in base64, so no character of a question or an answer can be read as
markup or code.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from zlib_ng.gzip_ng import compress

from routeyard.datacards.site.answers import UNSAID, questions
from routeyard.datacards.site.release import Ask, SiteRelease
from routeyard.datacards.sql import sql_of

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
    found = questions(
        book.ask,
        ids,
        models,
        has=has,
        longest=longest,
        longest_prompt=LONGEST_PROMPT,
    )
    for k, batch in enumerate(batched(found, ANSWERED)):
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
    told: dict[str, str] = {}
    if len(rows) * len(models) <= MOST_PAIRS:
        each = ask(_SQL["each"].format(most=MOST)).to_pylist()
        told = {row["query_id"]: row["outcomes"] for row in each}
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
        "outcomes": [told.get(row["query_id"]) for row in rows],
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
