"""The review queue: doubtful labels, most consequential first; decisions become verdicts."""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.label.audit.questions import answer, query_ids
from routeyard.pipelines.label.verdict_matrix import newest
from routeyard.pipelines.label.verdicts import verdict, verdict_table
from routeyard.schemas.untrusted_text import spreadsheet, unguarded

#: What a person may write; `cannot_tell` files an abstention.
DECISIONS = {"correct": "correct", "incorrect": "incorrect", "cannot_tell": "abstain"}
#: Columns of the exported file; only `decision` and `note` are read back.
COLUMNS = (
    "query_id", "model_id", "sample", "task", "why", "label", "order_changes", "closeness",
    "question", "references", "output", "span", "readings", "reasons", "decision", "note",
)  # fmt: skip
#: Of a longer answer the beginning, what was read and the end are shown, so many characters in all.
_SHOWN = 20_000
_WANTED = pa.schema({"place": pa.int64(), "query_id": pa.string(), "model_id": pa.string()})
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
    asked = queries.select(["query_id", "task"])
    known = verdicts.select(["query_id", "model_id", "scorer"])
    doubtful = answer(
        "doubtful", labels=labels, queries=asked, verdicts=known, suspects=query_ids(suspects)
    )
    rows: list[dict[str, Any]] = doubtful.to_pylist()
    right = answer("right_answers", labels=labels)
    at = {name: place for place, name in enumerate(right.column("model_id").to_pylist())}
    counts = right.column("n").to_numpy()
    gaps = np.abs(counts[:, None] - counts[None, :])
    closeness = (1 / (1 + gaps)).sum(axis=1) - 1
    flips: dict[Any, dict[int, int]] = defaultdict(dict)
    for row in rows:
        whole = row["why"] == "suspect reference"
        row["together"] = row["query_id"] if whole else (row["query_id"], row["model_id"])
        # an undecided label can only become right: unchanged it adds nothing
        flips[row["together"]][at[row["model_id"]]] = -1 if row["correct"] else 1
    for row in rows:
        row["order_changes"] = _order_changes(counts, flips[row["together"]])
        row["closeness"] = round(float(closeness[at[row["model_id"]]]), 6)
    rows.sort(key=lambda r: (-r["order_changes"], -r["closeness"], r["query_id"], r["model_id"]))
    return _with_texts(rows[:limit], queries, responses, newest(verdicts))


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
    texts = answer(
        "queue_texts",
        wanted=pa.table(
            [range(len(rows)), *([row[name] for row in rows] for name in _WANTED.names[1:])],
            schema=_WANTED,
        ),
        queries=queries.select(["query_id", "prompt", "references", "scorer"]),
        responses=responses.select(["query_id", "model_id", "sample", "text", "status"]),
        verdicts=current,
    )
    full = []
    for text in texts.to_pylist():
        text["output"], text["span"] = _shown(text["output"] or "", text["span"] or "")
        one = {**rows[text["place"]], **text, "decision": "", "note": ""}
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
    around = (start - part // 2, min(end, start + part) + part // 2)
    kept = np.zeros(len(text), bool)
    for first, last in ((0, part), around, (len(text) - part, len(text))):
        kept[max(0, first) : last] = True
    edges = np.flatnonzero(np.diff(kept, prepend=False, append=False))
    out, moved, before = "", "", 0
    for first, last in edges.reshape(-1, 2).tolist():
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
        return str(row["query_id"]), unguarded(row["model_id"] or ""), int(row["sample"] or "")
    except ValueError as error:
        raise BadInput(
            f"expected a number in `sample`, found {row['sample']!r}", where=where
        ) from error


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
