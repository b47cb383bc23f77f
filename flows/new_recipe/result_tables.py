"""Results in their normal form as the two tables that a recipe reads: questions and answers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.ingest.results.values import unknown_words
from routeyard.pipelines.io.staging import place, staging
from routeyard.schemas.statuses import ANSWERLESS, FAILED, status_of

#: More tokens than any model takes or gives, and more seconds than any call takes.
_MOST_TOKENS, _MOST_SECONDS = 100_000_000, 1_000_000.0
#: Columns of a recording that are taken as they are.
_PLAIN = ("prompt", "text", "error", "served_model")


def ids_of(table: pa.Table) -> pa.ChunkedArray:
    """Ids of the questions: with the suite where ids of several suites are alike."""
    pairs = table.group_by(["suite", "question"]).aggregate([]).num_rows
    if pairs == len(pc.unique(table.column("question"))):
        return table.column("question")
    return pc.binary_join_element_wise(table.column("suite"), table.column("question"), "/")


def questions_of(table: pa.Table, ids: pa.ChunkedArray) -> tuple[list[dict[str, Any]], list[str]]:
    """One row per question, and how many state different texts or references."""
    columns = table.select(["suite", "prompt", "reference", "split"])
    different: Counter[str] = Counter()
    grouped = columns.append_column("id", ids).group_by(
        ["id", "suite", "prompt", "reference", "split"]
    )
    found: dict[str, dict[str, Counter[str]]] = {}
    counted = grouped.aggregate([([], "count_all")]).to_pylist()
    for row in counted:
        one = found.setdefault(row["id"], {n: Counter() for n in columns.column_names})
        for name in columns.column_names:
            if row[name] not in (None, ""):
                one[name][row[name]] += row["count_all"]
    questions = []
    for name in sorted(found):
        said = {key: _most(counts) for key, counts in found[name].items()}
        different.update(key for key, counts in found[name].items() if len(counts) > 1)
        reference = said["reference"]
        questions.append(
            {
                "id": name,
                "question": said["prompt"] or name,
                "references": [reference] if reference else [],
                "task": said["suite"],
                "split": said["split"],
            }
        )
    words = {"prompt": "texts", "reference": "references"}
    doubts = [
        f"{different[key]:,} of {len(questions):,} questions have several {word}; the one that "
        "most answers have is taken"
        for key, word in words.items()
        if different[key]
    ]
    return questions, doubts


def asked_otherwise(table: pa.Table, ids: pa.ChunkedArray) -> bool:
    """Whether answers under one id state different texts of their question."""
    pairs = pa.table({"id": ids, "prompt": table.column("prompt")})
    stated = pairs.filter(pc.not_equal(pairs.column("prompt"), ""))
    each = stated.group_by("id").aggregate([("prompt", "count_distinct")])
    return (pc.max(each.column("prompt_count_distinct")).as_py() or 0) > 1


def _most(counts: Counter[str]) -> str | None:
    """The value that occurs most often, of several the first in order."""
    return min(counts, key=lambda one: (-counts[one], one)) if counts else None


def answers_table(
    table: pa.Table, ids: pa.ChunkedArray
) -> tuple[dict[str, pa.Array], dict[str, str], list[str]]:
    """Columns of the answers, the recipe's mapping of them, and values that were left out."""
    found: dict[str, Any] = {
        "query": ids, "model": table.column("arm"), "sample": table.column("sample"),
    }  # fmt: skip
    issues: list[str] = []
    for name in _PLAIN:
        found[name] = table.column(name)
    scores = _numbers(table, "score")
    outside = ~np.isnan(scores) & ((scores < 0) | (scores > 1))
    issues += _said(table, outside, "scores that are not in [0, 1]", scores)
    found["score"] = pa.array(np.where(outside, np.nan, scores), from_pandas=True)
    answered = ~np.isnan(scores) | np.array(table.column("text").is_valid())
    for name in ("prompt_tokens", "completion_tokens", "cost_usd", "latency_s"):
        values = _numbers(table, name)
        wrong = ~np.isnan(values) & _senseless(name, values)
        unknown = (values == 0) & answered
        issues += _said(table, wrong, f"values of {name} that cannot be", values)
        issues += _said(table, unknown, f"zeros of {name} beside an answer: unknown, not 0", values)
        kept = pa.array(np.where(wrong | unknown, np.nan, values), from_pandas=True)
        found[name] = kept.cast(pa.int64()) if name.endswith("tokens") else kept
    found["status"], decided = _statuses(table, scores)
    issues += decided
    fields = {
        name: name
        for name, column in found.items()
        if name in ("query", "model") or column.null_count < len(column)
    }
    if decided:
        fields.pop("status", None)
        fields.pop("error", None)
    if len(pc.unique(table.column("sample"))) <= 1:
        del fields["sample"], found["sample"]
    return found, fields, issues


def _statuses(table: pa.Table, scores: np.ndarray) -> tuple[pa.Array, list[str]]:
    """Statuses in our words, and a sentence where the source counts a missing answer as wrong.

    A word that nobody knows beside no text stays, so that the build asks; so does `failed`, which
    the rest of the row explains.
    """
    words = table.column("status").to_pylist()
    known = {word: status_of(word) for word in set(words) if word is not None}
    known |= {word: word for word in known if word.strip().lower() in FAILED}
    found = [known.get(word) for word in words]
    if asked := unknown_words(table):
        return pa.array([w if w in asked else s for w, s in zip(words, found, strict=True)]), []
    counted = Counter(
        status for status, score in zip(found, scores, strict=True)
        if status in ANSWERLESS and not np.isnan(score)
    )  # fmt: skip
    if not counted:
        return pa.array(found, pa.string()), []
    named = ", ".join(f"{n:,} `{status}`" for status, n in sorted(counted.items()))
    says = f"answers that ended so count as their source counts them: {named}; to make them "
    return pa.array(found, pa.string()), [says + "missing, add `status: status` to the recording"]


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    values: np.ndarray = table.column(name).to_numpy().astype(float)
    return values


def _senseless(name: str, values: np.ndarray) -> np.ndarray:
    """Which values cannot be: below zero, no whole number of tokens, more than anybody takes."""
    most = {"cost_usd": np.finfo(float).max, "latency_s": _MOST_SECONDS}.get(name, _MOST_TOKENS)
    whole = name.endswith("tokens")
    wrong: np.ndarray = (values < 0) | (values > most) | (whole & (values != np.floor(values)))
    return wrong


def _said(table: pa.Table, where: np.ndarray, what: str, values: np.ndarray) -> list[str]:
    """A sentence on the values that are left out; none where there is no such value."""
    rows = np.flatnonzero(where)
    if not len(rows):
        return []
    first = int(rows[0])
    at = table.column("at")[first].as_py()
    return [f"left out: {len(rows):,} {what} (first {values[first]:g} at {at})"]


def write_tables(
    folder: Path, questions: list[dict[str, Any]], answers: dict[str, pa.Array]
) -> None:
    if folder.exists():
        raise BadInput(
            f"{folder} exists already and is not overwritten",
            where=str(folder),
            next_step="give the recipe another name, or remove the folder",
        )
    schema = pa.schema(
        [("id", pa.string()), ("question", pa.string()), ("references", pa.list_(pa.string())),
         ("task", pa.string()), ("split", pa.string())]
    )  # fmt: skip
    folder.parent.mkdir(parents=True, exist_ok=True)
    with staging(folder) as made:
        pq.write_table(pa.Table.from_pylist(questions, schema), made / "queries.parquet")
        pq.write_table(pa.table(answers), made / "responses.parquet")
        place(made, folder)
