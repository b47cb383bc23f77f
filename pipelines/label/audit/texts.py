"""Stored texts that are no answers, found in a whole set of answers; `text_kinds.py` says of each
what it is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import pyarrow as pa

from routeyard.pipelines.label.audit.questions import question
from routeyard.pipelines.label.audit.text_kinds import ENDS, SHORT, Setting, kind_of, plain
from routeyard.pipelines.label.policies import escalates_on

#: Kind of a text → kind of a finding, and what the texts are.
_KINDS = {
    "stub": ("stub_answers", "stubs without content"),
    "refusal": ("refusals", "refusals"),
    "harness_error": ("harness_errors", "messages of a harness, no answers of the model"),
    "truncated": ("truncated_answers", "cut off"),
    "constant": ("constant_text", "one text for many questions"),
}
#: Columns of the table `texts`: a text that is no answer.
_TOLD = pa.schema(
    {
        **dict.fromkeys(("model_id", "query_id"), pa.string()),
        "sample": pa.int32(),
        **dict.fromkeys(("kind", "text"), pa.string()),
        "scored_right": pa.bool_(),
    }
)


def look(connection: Any) -> tuple[dict[str, pa.Table], list[tuple[str, str, str]]]:
    """Findings about stored texts; the connection holds queries, verdicts, labels and texts.

    Args:
        connection: DuckDB, with `texts` (query_id, model_id, sample, text).

    Returns:
        Findings as (kind, about, says), and the tables `texts` (each text that is no answer, with
        its kind: its start, or its end where it is cut), `readable` (accuracy with and without
        those that are scored as wrong), `both_ways` (one text scored right and wrong).
    """
    named = [name for (name,) in connection.sql("SELECT DISTINCT scorer FROM queries").fetchall()]
    free = [name for name in named if escalates_on(name) == "not_correct"]
    connection.register("open_scorers", pa.table({"scorer": pa.array(free, pa.string())}))
    connection.execute(question("scored"))
    table = pa.Table.from_pylist(list(_kinds(connection)), schema=_TOLD)
    connection.register("no_answers", table)
    tables = {
        "texts": table,
        "readable": connection.sql(question("readable")).to_arrow_table(),
        "both_ways": connection.sql(question("both_ways")).to_arrow_table(),
    }
    return tables, _findings(tables)


def _kinds(connection: Any) -> Iterator[dict[str, Any]]:
    """Every text that is no answer, with its kind."""
    vocabulary = {
        task: frozenset(form for word in words for form in (plain(word), word.strip().casefold()))
        for task, words in connection.sql(question("vocabulary")).fetchall()
    }
    opens = _openings(connection)
    looked_at = connection.sql(question("looked_at"), params=[list(ENDS)])
    for batch in looked_at.to_arrow_reader(5000):
        for row in batch.to_pylist():
            text = row["text"]
            setting = Setting(
                row["typical"],
                row["ends"],
                vocabulary.get(row["task"], frozenset()),
                row["unread"],
                opens.get(plain(text), 0) if len(text) <= SHORT else 0,
                (row["answers"], row["different"]),
                row["scored_right"],
            )
            if kind := kind_of(text, setting):
                shown = text[-200:] if kind == "truncated" else text[:200]
                yield row | {"kind": kind, "text": shown}


def _openings(connection: Any) -> Counter[str]:
    """Short text → questions, up to a few, to which a longer answer begins with it."""
    short = {plain(text) for (text,) in connection.sql(question("short")).fetchall()}
    found: dict[str, set[str]] = defaultdict(set)
    for query, head in connection.sql(question("heads")).fetchall():
        words = plain(head).split()
        for n in range(1, min(len(words), 8)):
            opening = plain(" ".join(words[:n]))
            if opening in short and len(found[opening]) < 3:
                found[opening].add(query)
    return Counter({opening: len(queries) for opening, queries in found.items()})


def _findings(tables: dict[str, pa.Table]) -> list[tuple[str, str, str]]:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in tables["texts"].to_pylist():
        groups[row["kind"], row["model_id"]].append(row)
    readable = {row["model_id"]: row for row in tables["readable"].to_pylist()}
    found = []
    for (kind, model), rows in sorted(groups.items(), key=itemgetter(0)):
        of, (name, what) = readable[model], _KINDS[kind]
        cut = slice(-30, None) if kind == "truncated" else slice(60)
        shown = Counter(row["text"][cut] for row in rows).most_common(3)
        examples = ", ".join(
            f"{'nothing at all' if not text.strip() else repr(text)} ({n:,}×)" for text, n in shown
        )
        left = "unknown" if of["accuracy_readable"] is None else f"{of['accuracy_readable']:.1%}"
        stored = "unknown" if of["accuracy"] is None else f"{of['accuracy']:.1%}"
        wrong = sum(row["scored_right"] is False for row in rows)
        says = (
            f"{len(rows):,} of {of['answers']:,} answers are {what}, {wrong:,} of them scored as "
            f"wrong, such as {examples}: accuracy {stored} as stored, {left} without its wrong "
            "answers of this and the other kinds of texts that are no answers"
        )
        found.append((name, model, says))
    for row in tables["both_ways"].to_pylist():
        says = (
            f"{row['text'][:60]!r} is marked right {row['marked_right']:,} times of "
            f"{row['answers']:,} under the same question and reference"
            + (f", in {row['queries']} duplicate rows" if row["queries"] > 1 else "")
        )
        kind = "duplicate_row_contradicts" if row["queries"] > 1 else "same_text_scored_both_ways"
        found.append((kind, row["query_id"], says))
    return found
