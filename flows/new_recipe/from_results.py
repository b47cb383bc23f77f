"""Results that somebody has already, as the two tables that a recipe reads, and its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.flows.new_recipe.first_rows import few, relative
from routeyard.flows.new_recipe.recorded import AnswerSource
from routeyard.pipelines.errors import BadInput, SourceError
from routeyard.pipelines.ingest.guessing.guess import Guess
from routeyard.pipelines.ingest.guessing.scorers import ScorerSuggestion, suggest
from routeyard.pipelines.ingest.results import AggregatesOnly, Results, read_results
from routeyard.pipelines.ingest.results.roles import is_weak
from routeyard.pipelines.io.staging import place, staging
from routeyard.schemas.statuses import ANSWERLESS, status_of

#: More tokens than any model takes or gives, and more seconds than any call takes.
_MOST_TOKENS, _MOST_SECONDS = 100_000_000, 1_000_000.0
#: Columns of a recording that are taken as they are.
_PLAIN = ("text", "error", "served_model")
#: Questions that a scorer is tried on.
_TRIED = 200


@dataclass(frozen=True, slots=True)
class ResultsRecipe:
    """The parts of a recipe of results: the questions, as a recipe names them, and the answers.

    Attributes:
        guess: What each column was taken for.
    """

    source: dict[str, Any]
    answers: AnswerSource
    scorer: ScorerSuggestion
    guess: Guess
    rows: int


def recorded_results(origin: str) -> Results | None:
    """Somebody's results at a place; None where questions are there, or nothing can grade answers.

    Raises:
        AggregatesOnly: the figures there are of many questions each.
    """
    path = Path(origin).expanduser()
    if not path.exists():
        return None
    try:
        found = read_results(path)
    except AggregatesOnly:
        raise
    except SourceError:
        return None
    scored = found.table.column("score").null_count < found.table.num_rows
    referenced = found.table.column("reference").null_count < found.table.num_rows
    if not scored and (not referenced or is_weak(found.columns.get("text", ""))):
        return None
    # Without the name of a model, a table of questions with some figure looks the same.
    guessed = any(note.about == "arm" and note.kind == "question" for note in found.notes)
    asked = found.table.column("prompt").null_count < found.table.num_rows
    answered = "text" in found.columns and not is_weak(found.columns["text"])
    weak = asked or is_weak(found.columns.get("score", ""), "score")
    return None if guessed and weak and not answered else found


def from_results(results: Results, origin: str, recipe: Path) -> ResultsRecipe:
    """Write `NAME-data` with questions and answers beside the recipe, and return its parts.

    Values that make no sense are left out, and named with a row: costs below zero, tokens that
    are no whole numbers, times below zero. $0, 0 tokens and 0 seconds beside an answer are
    unknown, not free.

    Raises:
        BadInput: the folder exists.
    """
    table = results.table
    graded = table.column("score").null_count < table.num_rows
    ids = _ids(table)
    questions, doubts = _questions(table, ids)
    has_texts = any(row["question"] != row["id"] for row in questions)
    if graded:
        scorer = ScorerSuggestion("given", "the answers are graded by their source")
    else:
        step = max(1, len(questions) // _TRIED)
        tried = questions[::step][:_TRIED]
        scorer = suggest([q["question"] for q in tried], [q["references"] for q in tried],
                         [[] for _ in tried])  # fmt: skip
    answers, fields, issues = _answers(results, ids)
    folder = recipe.with_name(f"{recipe.stem}-data")
    _write(folder, questions, answers)
    asked = [note.says for note in results.notes if note.kind == "question"]
    known = [note.says for note in results.notes if note.kind in ("left_out", "value", "status")]
    models = sorted(set(answers["model"].to_pylist()))
    collect = {
        "provider": "recorded",
        "recorded": [{"path": relative(folder / "responses.parquet", recipe), "fields": fields}],
    }
    return ResultsRecipe(
        source=_source(recipe, folder, scorer, has_texts=has_texts, questions=questions),
        answers=AnswerSource(
            pool={"models": [{"model_id": name} for name in models]},
            collect=collect,
            words=f"{len(models)} models that {Path(origin).name} holds answers of",
            waivers=_waivers(fields),
            lacks=[f"your word: {one}" for one in [*asked, *doubts]],
            graded=graded,
            known_issues=[*known, *issues],
            has_texts=has_texts,
        ),
        scorer=scorer,
        guess=Guess(
            columns=[],
            fields={name: _said_place(column) for name, column in results.columns.items()},
            reasons=dict.fromkeys(results.columns, "by its name and values"),
        ),
        rows=table.num_rows,
    )


def _said_place(column: str) -> str:
    """Where a value comes from, in words."""
    if column.startswith("(path"):
        return "a part of the file's path"
    if column.startswith("(key"):
        return "a key of the document"
    plain = column.removeprefix("(name).").strip("()")
    return f"the columns of models ({plain})" if column.startswith("(") else repr(plain)


def _ids(table: pa.Table) -> pa.ChunkedArray:
    """Ids of the questions: with the suite where ids of several suites are alike."""
    pairs = table.group_by(["suite", "question"]).aggregate([]).num_rows
    if pairs == len(pc.unique(table.column("question"))):
        return table.column("question")
    return pc.binary_join_element_wise(table.column("suite"), table.column("question"), "/")


def _questions(table: pa.Table, ids: pa.ChunkedArray) -> tuple[list[dict[str, Any]], list[str]]:
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


def _most(counts: Counter[str]) -> str | None:
    """The value that occurs most often, of several the first in order."""
    return min(counts, key=lambda one: (-counts[one], one)) if counts else None


def _answers(
    results: Results, ids: pa.ChunkedArray
) -> tuple[dict[str, pa.Array], dict[str, str], list[str]]:
    """Columns of the answers, the recipe's mapping of them, and values that were left out."""
    table = results.table
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
        del fields["status"]
        fields.pop("error", None)
    if len(pc.unique(table.column("sample"))) <= 1:
        fields.pop("sample")
    return found, fields, issues


def _statuses(table: pa.Table, scores: np.ndarray) -> tuple[pa.Array, list[str]]:
    """Statuses in our words, and a sentence where the source counts a missing answer as wrong."""
    words = table.column("status").to_pylist()
    known = {word: status_of(word) for word in set(words) if word is not None}
    found = [known.get(word) for word in words]
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
    if name == "cost_usd":
        return (values < 0) | np.isinf(values)
    if name == "latency_s":
        return (values < 0) | (values > _MOST_SECONDS)
    return (values < 0) | (values != np.floor(values)) | (values > _MOST_TOKENS)


def _said(table: pa.Table, where: np.ndarray, what: str, values: np.ndarray) -> list[str]:
    """A sentence on the values that are left out; none where there is no such value."""
    rows = np.flatnonzero(where)
    if not len(rows):
        return []
    first = int(rows[0])
    at = table.column("at")[first].as_py()
    return [f"left out: {len(rows):,} {what} (first {values[first]:g} at {at})"]


def _source(
    recipe: Path, folder: Path, scorer: ScorerSuggestion, *, has_texts: bool,
    questions: Sequence[dict[str, Any]],
) -> dict[str, Any]:  # fmt: skip
    import re

    name = re.sub(r"[^\w.-]+", "_", recipe.stem).strip("_") or "questions"
    fields: dict[str, Any] = {"id": "id", "question": "question"}
    if any(row["references"] for row in questions):
        fields["references"] = "references"
    if any(row["task"] for row in questions):
        fields["task"] = "task"
    if any(row["split"] for row in questions):
        fields["metadata"] = ["split"]
    source = {
        "name": name,
        "path": relative(folder / "queries.parquet", recipe),
        "scorer": scorer.scorer,
        "fields": fields,
    }
    if not has_texts:
        source["redistribute_text"] = False
    if scorer.scorer not in ("given", "none"):
        source["missing_reference"] = "remove"
    return source


def _waivers(fields: dict[str, str]) -> list[dict[str, str]]:
    """The gate of the metering: nobody here has metered the answers of others."""
    lacks = [n for n in ("prompt_tokens", "completion_tokens", "cost_usd") if n not in fields]
    reason = "Usage and prices are those that the source states; the findings are listed."
    if lacks:
        reason = f"The source does not state {few(lacks)}; the findings on the rest are listed."
    return [{"gate": "metering", "reason": reason}]


def _write(folder: Path, questions: list[dict[str, Any]], answers: dict[str, pa.Array]) -> None:
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
