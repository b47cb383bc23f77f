"""The review queue: doubtful labels, most consequential first; decisions become verdicts."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.label.audit.questions import question
from routeyard.pipelines.label.verdict_matrix import newest
from routeyard.pipelines.label.verdicts import verdict, verdict_table
from routeyard.schemas.untrusted_text import spreadsheet

#: What a person may write; `cannot_tell` files an abstention.
DECISIONS = {"correct": "correct", "incorrect": "incorrect", "cannot_tell": "abstain"}
#: Columns of the exported file; only `decision` and `note` are read back.
COLUMNS = (
    "query_id", "model_id", "sample", "task", "why", "label", "order_changes", "closeness",
    "question", "references", "output", "span", "readings", "reasons", "decision", "note",
)  # fmt: skip
#: Of a longer answer the beginning, what was read and the end are shown, so many characters in all.
_SHOWN = 20_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def review_queue(
    queries: pa.Table,
    responses: pa.Table,
    verdicts: pa.Table,
    labels: pa.Table,
    suspects: pa.Table | None = None,
    *,
    limit: int = 200,
) -> list[dict[str, Any]]:
    """Labels worth a person's time, ordered by what flipping them does to the ranking.

    Doubtful are contested and undecided labels, and labels of questions whose
    reference is suspect; those a person has decided are done. `order_changes`
    counts the pairs of models whose order by number of correct answers changes when
    this label flips (a tie gained or lost counts ½; for a suspect reference all its
    labels flip together). `closeness` breaks ties: for each other model, how near its
    accuracy is, 1 / (1 + gap in correct answers), summed.

    Returns:
        At most `limit` rows with the columns of `COLUMNS`, one per response.
    """
    rows = _doubtful(queries, verdicts, labels, suspects)
    models, counts = _counts(labels)
    if not rows or not models:
        return []
    at = {name: place for place, name in enumerate(models)}
    gaps = np.abs(counts[:, None] - counts[None, :])
    closeness = (1 / (1 + gaps)).sum(axis=1) - 1
    whole = {row["query_id"] for row in rows if row["why"] == "suspect reference"}
    together: dict[str, dict[int, int]] = {}
    for row in rows:
        if row["query_id"] in whole:
            flips = together.setdefault(row["query_id"], {})
            flips[at[row["model_id"]]] = _flip(row["correct"])
    for row in rows:
        place = at[row["model_id"]]
        moved = together.get(row["query_id"]) or {place: _flip(row["correct"])}
        row["order_changes"] = _order_changes(counts, moved)
        row["closeness"] = round(float(closeness[place]), 6)
    rows.sort(key=lambda r: (-r["order_changes"], -r["closeness"], r["query_id"], r["model_id"]))
    return _with_texts(rows[:limit], queries, responses, newest(verdicts))


def _doubtful(
    queries: pa.Table, verdicts: pa.Table, labels: pa.Table, suspects: pa.Table | None
) -> list[dict[str, Any]]:
    import duckdb

    with duckdb.connect() as connection:
        connection.register("labels", labels)
        connection.register("queries", queries.select(["query_id", "task"]))
        connection.register("verdicts", verdicts.select(["query_id", "model_id", "scorer"]))
        empty = pa.table({"query_id": pa.array([], pa.string())})
        connection.register("suspects", empty if suspects is None else suspects)
        found = connection.sql(question("doubtful")).to_arrow_table()
        rows: list[dict[str, Any]] = found.to_pylist()
        return rows


def _counts(labels: pa.Table) -> tuple[list[str], Any]:
    """Models by name, and their correct answers."""
    import duckdb

    with duckdb.connect() as connection:
        connection.register("labels", labels)
        found = connection.sql(
            "SELECT model_id, count(*) FILTER (correct) AS n FROM labels "
            "GROUP BY model_id ORDER BY model_id"
        ).fetchall()
    return [name for name, _ in found], np.array([n for _, n in found], dtype=np.int64)


def _flip(correct: bool | None) -> int:
    # an undecided label can only become right: unchanged it adds nothing
    return -1 if correct else 1


def _order_changes(counts: Any, moved: Mapping[int, int]) -> float:
    after = counts.copy()
    for place, step in moved.items():
        after[place] += step
    touched = sorted(moved)
    before = np.sign(counts[touched, None] - counts[None, :])
    now = np.sign(after[touched, None] - after[None, :])
    changed = np.abs(now - before) / 2
    # pairs among the touched models are in two rows
    inside = changed[:, touched].sum() / 2
    return float(changed.sum() - inside)


def _with_texts(
    rows: list[dict[str, Any]], queries: pa.Table, responses: pa.Table, current: pa.Table
) -> list[dict[str, Any]]:
    import duckdb

    wanted = pa.table(
        {
            "place": pa.array(range(len(rows)), pa.int64()),
            "query_id": pa.array([row["query_id"] for row in rows], pa.string()),
            "model_id": pa.array([row["model_id"] for row in rows], pa.string()),
        }
    )
    with duckdb.connect() as connection:
        for name, table in (
            ("wanted", wanted),
            ("queries", queries.select(["query_id", "prompt", "references", "scorer"])),
            ("responses", responses.select(["query_id", "model_id", "sample", "text", "status"])),
            ("verdicts", current),
        ):
            connection.register(name, table)
        found = connection.sql(question("queue_texts")).to_arrow_table()
    full = []
    for text in found.to_pylist():
        row = rows[text.pop("place")]
        label = {True: "correct", False: "incorrect", None: "undecided"}[row["correct"]]
        label += f" by {row['decided_by']}" if row["decided_by"] else ""
        text["output"], text["span"] = _shown(text["output"] or "", text["span"] or "")
        one = {**row, **text, "label": label, "decision": "", "note": ""}
        full.append({name: "" if one[name] is None else one[name] for name in COLUMNS})
    return full


def _shown(text: str, span: str) -> tuple[str, str]:
    """A long answer cut to its beginning, what was read and its end; the span moves along.

    Answers are at the end, and the span that was read must be visible.
    """
    if len(text) <= _SHOWN:
        return text, span
    start, end = map(int, span.split("-")) if span else (0, 0)
    part = _SHOWN // 4
    wanted = [(0, part), (start - part // 2, min(end, start + part) + part // 2)]
    kept: list[list[int]] = []
    for first, last in sorted([*wanted, (len(text) - part, len(text))]):
        first, last = max(0, first), min(len(text), last)
        if kept and first <= kept[-1][1]:
            kept[-1][1] = max(kept[-1][1], last)
        else:
            kept.append([first, last])
    out, moved, before = "", "", 0
    for first, last in kept:
        if out:
            out += f"\n[… {first - before:,} characters …]\n"
        if span and first <= start < last:
            shift = len(out) - first
            moved = f"{start + shift}-{min(end, last) + shift}"
        out += text[first:last]
        before = last
    return out, moved


def to_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """The queue as CSV; fill in `decision` with correct, incorrect or cannot_tell."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: spreadsheet(row[name]) for name in COLUMNS})
    return out.getvalue()


def from_csv(text: str, *, by: str, at: str) -> pa.Table:
    """Verdicts of `human:<by>` from an exported file whose `decision` is filled in.

    Args:
        at: When it was decided, ISO 8601 UTC; a later decision of the same person
            on the same response counts instead of an earlier one.

    Raises:
        BadInput: columns are missing, or a decision is not one of the three words.
    """
    csv.field_size_limit(10_000_000)
    reader = csv.DictReader(io.StringIO(text))
    needed = {"query_id", "model_id", "sample", "decision"}
    if missing := sorted(needed - set(reader.fieldnames or ())):
        raise BadInput(
            f"the file lacks the column(s) {', '.join(missing)}",
            next_step="export it with `routeyard review NAME --csv FILE` and fill in `decision`",
        )
    rows = []
    try:
        for number, row in enumerate(reader, start=2):
            said = (row["decision"] or "").strip().lower().replace(" ", "_")
            if said:
                key = _key(row, f"line {number}")
                rows.append((key, said, row.get("note") or "", f"line {number}"))
    except csv.Error as error:
        raise BadInput(f"expected a CSV file: {error}", where=f"line {reader.line_num}") from error
    return decisions(rows, by=by, at=at)


def _key(row: Mapping[str, str | None], where: str) -> tuple[str, str, int]:
    try:
        # A row that ends early has null in its last cells.
        return str(row["query_id"]), _plain(row["model_id"] or ""), int(row["sample"] or "")
    except ValueError as error:
        raise BadInput(
            f"expected a number in `sample`, found {row['sample']!r}", where=where
        ) from error


def _plain(text: str) -> str:
    return text[1:] if text[:2] in ("'=", "'+", "'-", "'@") else text


def decisions(
    rows: Iterable[tuple[tuple[str, str, int], str, str, str]], *, by: str, at: str
) -> pa.Table:
    """Verdicts of `human:<by>` from (response key, decision, note, where) rows.

    Raises:
        BadInput: a name that is not a plain word, or a decision that is not one of the three.
    """
    if not _NAME.fullmatch(by):
        raise BadInput(
            f"{by!r} cannot be a reviewer's name",
            next_step="use letters, digits, dots, dashes and underscores",
        )
    filed: dict[tuple[str, str, int], dict[str, Any]] = {}
    for key, said, note, where in rows:
        if said not in DECISIONS:
            raise BadInput(
                f"{said!r} is no decision",
                where=where,
                next_step=f"write one of {', '.join(DECISIONS)}",
            )
        reason = note or f"decided by {by}"
        filed[key] = verdict(key, f"human:{by}", at, DECISIONS[said], reason=reason, cost_usd=0.0)
    return verdict_table(filed.values())
