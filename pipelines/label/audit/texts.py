"""Stored texts that are no answers, found in a whole set of answers; `text_kinds.py` says of each
what it is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from routeyard.pipelines.label.audit.questions import question
from routeyard.pipelines.label.audit.text_kinds import ENDS, SHORT, Setting, kind_of, plain
from routeyard.pipelines.label.policies import escalates_on


class TextFinding(NamedTuple):
    """A finding before it has a place in the report."""

    kind: str
    about: str
    says: str


#: Kind of a text → kind of a finding, and what the texts are.
_KINDS = {
    "stub": ("stub_answers", "stubs without content"),
    "refusal": ("refusals", "refusals"),
    "harness_error": ("harness_errors", "messages of a harness, no answers of the model"),
    "truncated": ("truncated_answers", "cut off"),
    "constant": ("constant_text", "one text for many questions"),
}


def look(connection: Any) -> tuple[dict[str, pa.Table], list[TextFinding]]:
    """Findings about stored texts; the connection holds queries, verdicts, labels and texts.

    Args:
        connection: DuckDB, with `texts` (query_id, model_id, sample, text).

    Returns:
        `texts` (each text that is no answer, with its kind: its start, or its end where it is cut),
        `readable` (accuracy with and without those that are scored as wrong), `both_ways` (one
        text scored right and wrong).
    """
    named = [name for (name,) in connection.sql("SELECT DISTINCT scorer FROM queries").fetchall()]
    free = [name for name in named if escalates_on(name) == "not_correct"]
    connection.register("open_scorers", pa.table({"scorer": pa.array(free, pa.string())}))
    connection.execute(question("scored"))
    rows = list(_kinds(connection))
    names = ("model_id", "query_id", "sample", "kind", "text", "scored_right")
    table = pa.table(
        {
            name: pa.array(values, kind)
            for name, values, kind in zip(
                names,
                zip(*rows, strict=True) if rows else [[]] * len(names),
                (pa.string(), pa.string(), pa.int32(), pa.string(), pa.string(), pa.bool_()),
                strict=True,
            )
        }
    )
    connection.register("no_answers", table)
    tables = {
        "texts": table,
        "readable": connection.sql(question("readable")).to_arrow_table(),
        "both_ways": connection.sql(question("both_ways")).to_arrow_table(),
    }
    return tables, _findings(tables)


def _kinds(connection: Any) -> Iterator[tuple[Any, ...]]:
    """(model, query, sample, kind, text, scored right) of every text that is no answer."""
    typical = dict(connection.sql(question("typical")).fetchall())
    ends: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for model, last, count in connection.sql(question("endings")).fetchall():
        ends[model][0] += count * (last in ENDS)
        ends[model][1] += count
    vocabulary = {
        task: frozenset(form for word in words for form in (plain(word), word.strip().casefold()))
        for task, words in connection.sql(question("vocabulary")).fetchall()
    }
    answers = {
        (model, text): (n, references)
        for model, text, n, references in connection.sql(question("repeated")).fetchall()
    }
    opens = _openings(connection)
    reader = connection.sql(question("looked_at")).to_arrow_reader(5000)
    for batch in reader:
        for row in batch.to_pylist():
            text, model = row["text"], row["model_id"]
            total = ends[model]
            kind = kind_of(
                text,
                Setting(
                    typical.get(row["task"], 0.0),
                    total[0] / total[1] if total[1] else 0.0,
                    vocabulary.get(row["task"], frozenset()),
                    row["unread"],
                    opens.get(plain(text), 0) if len(text) <= SHORT else 0,
                    answers.get((model, text), (1, 1)),
                    row["is_right"],
                ),
            )
            if kind:
                shown = text[-200:] if kind == "truncated" else text[:200]
                yield model, row["query_id"], row["sample"], kind, shown, row["is_right"]


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


def _findings(tables: dict[str, pa.Table]) -> list[TextFinding]:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in tables["texts"].to_pylist():
        groups[row["kind"], row["model_id"]].append(row)
    readable = {row["model_id"]: row for row in tables["readable"].to_pylist()}
    found = []
    for (kind, model), rows in sorted(groups.items(), key=lambda one: (*one[0],)):
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
        found.append(TextFinding(name, model, says))
    for row in tables["both_ways"].to_pylist():
        says = (
            f"{row['text'][:60]!r} is marked right {row['marked_right']:,} times of "
            f"{row['answers']:,} under the same question and reference"
            + (f", in {row['queries']} duplicate rows" if row["queries"] > 1 else "")
        )
        kind = "duplicate_row_contradicts" if row["queries"] > 1 else "same_text_scored_both_ways"
        found.append(TextFinding(kind, row["query_id"], says))
    return found
