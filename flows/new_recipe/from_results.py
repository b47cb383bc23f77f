"""Results that somebody has already, as the two tables that a recipe reads, and its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from routeyard.flows.new_recipe.first_rows import relative
from routeyard.flows.new_recipe.recorded import AnswerSource
from routeyard.flows.new_recipe.result_tables import (
    answers_table,
    asked_otherwise,
    ids_of,
    metering_waivers,
    questions_of,
    write_tables,
)
from routeyard.pipelines.errors import SourceError
from routeyard.pipelines.ingest.guessing.guess import Guess
from routeyard.pipelines.ingest.guessing.scorers import ScorerSuggestion, suggest
from routeyard.pipelines.ingest.results import AggregatesOnly, Results, read_results
from routeyard.pipelines.ingest.results.roles import is_weak
from routeyard.pipelines.ingest.results.values import ASKED

#: Kinds of notes that the card repeats.
_ISSUES = ("left_out", "value", "status", "unpriced", "columns")
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


@dataclass(frozen=True, slots=True)
class NoResults:
    """Why the files at a place are taken for questions.

    Attributes:
        error: Why no answers of models can be read there, where that is so.
        doubt: What a person has to confirm, where columns could be scores of models as well.
        columns: Those columns.
    """

    error: SourceError | None = None
    doubt: str = ""
    columns: frozenset[str] = frozenset()


def recorded_results(origin: str, *, answers: bool = False) -> Results | NoResults:
    """Somebody's results at a place, or why there are questions, or nothing that grades answers.

    Args:
        answers: A person says that answers of models are there: a column `answer` beside names of
            models is what they said.

    Raises:
        AggregatesOnly: the figures there are of many questions each.
    """
    path = Path(origin).expanduser()
    if not path.exists():
        return NoResults()
    try:
        found = read_results(path)
    except AggregatesOnly:
        raise
    except SourceError as error:
        return NoResults(error)
    return _answers_or_questions(found, answers)


def _answers_or_questions(found: Results, answers: bool) -> Results | NoResults:
    """The results, or why their rows may as well be questions."""
    scored = found.table.column("score").null_count < found.table.num_rows
    referenced = found.table.column("reference").null_count < found.table.num_rows
    # Without the name of a model, a table of questions with some figure looks the same.
    guesses = [n.says for n in found.notes if n.about == "arm" and n.kind == "question"]
    unsure = is_weak(found.columns.get("text", "")) and not (answers and not guesses)
    if not scored and (not referenced or unsure):
        return NoResults()
    # Several trials of one question are no questions.
    trials = "sample" in found.columns and (pc.max(found.table.column("sample")).as_py() or 0) > 0
    asked = not trials and found.table.column("prompt").null_count < found.table.num_rows
    answered = "text" in found.columns and not is_weak(found.columns["text"])
    weak = asked or is_weak(found.columns.get("score", ""), "score")
    if not guesses or not weak or answered:
        return found
    if scored and found.columns.get("arm") == "(model)":
        return NoResults(doubt=guesses[0], columns=_like_scores(found.table))
    return NoResults()


def _like_scores(table: pa.Table) -> frozenset[str]:
    """Columns whose largest figure is at least half of a scale, and none outside of it.

    Counts and ids, which other columns of figures hold, are far below or above.
    """
    ranges = table.group_by("arm").aggregate([("score", "min"), ("score", "max")]).to_pylist()
    return frozenset(
        one["arm"]
        for one in ranges
        if one["score_max"] is not None and one["score_min"] >= 0 and 0.5 <= one["score_max"] <= 1
    )


def from_results(
    results: Results, origin: str, recipe: Path, accepted: Mapping[str, str] = MappingProxyType({})
) -> ResultsRecipe:
    """Write `NAME-data` with questions and answers beside the recipe, and return its parts.

    Values that make no sense are left out, and named with a row: costs below zero, tokens that
    are no whole numbers, times below zero. $0, 0 tokens and 0 seconds beside an answer are
    unknown, not free.

    Args:
        accepted: Gate of a finding that a person accepts → what was found; the recipe waives it.

    Raises:
        BadInput: the folder exists.
    """
    table = results.table
    graded = table.column("score").null_count < table.num_rows
    ids = ids_of(table)
    questions, doubts = questions_of(table, ids)
    # A question without an id is its own id, and has a text.
    has_texts = table.column("prompt").null_count < table.num_rows
    if graded:
        scorer = ScorerSuggestion("given", "the answers are graded by their source")
    else:
        scorer = _suggested(questions, table.column("text").drop_null())
    answers, fields, issues = answers_table(
        results.table, ids, [gate.removeprefix("audit:") for gate in accepted]
    )
    folder = recipe.with_name(f"{recipe.stem}-data")
    write_tables(folder, questions, answers)
    asked = [note.says for note in results.notes if note.kind in ASKED]
    known = [note.says for note in results.notes if note.kind in _ISSUES]
    models = sorted(set(answers["model"].to_pylist()))
    unread = [one.says for one in results.notes if one.about == "cost"]
    waivers = {
        **_metering(metering_waivers(questions, answers), unread),
        **{gate: f"Accepted as it is: {says}" for gate, says in accepted.items()},
    }
    recorded: dict[str, Any] = {"path": relative(folder / "responses.parquet", recipe)}
    if asked_otherwise(table, ids):
        # `doubts` says so; the build counts those whose text is not the one that was taken.
        recorded["other_questions"] = "keep"
    collect = {"provider": "recorded", "recorded": [{**recorded, "fields": fields}]}
    return ResultsRecipe(
        source=_source(recipe, folder, scorer, questions),
        answers=AnswerSource(
            pool={"models": [{"model_id": name} for name in models]},
            collect=collect,
            words=f"{len(models)} models that {Path(origin).name} holds answers of",
            waivers=[{"gate": gate, "reason": reason} for gate, reason in waivers.items()],
            lacks=[f"your word: {one}" for one in [*asked, *doubts]],
            graded=graded,
            known_issues=[*known, *issues],
            has_texts=has_texts,
            unread=[one.says for one in results.notes if one.kind in ("columns", "unpriced")],
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
    """Where a value comes from, as a person would say it."""
    if column.startswith("(path"):
        return "a part of the file's path"
    if column.startswith("(key"):
        return "a key of the document"
    plain = column.removeprefix("(name).").strip("()")
    return f"the columns of models ({plain})" if column.startswith("(") else repr(plain)


def _source(
    recipe: Path, folder: Path, scorer: ScorerSuggestion, questions: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    import re

    name = re.sub(r"[^\w.-]+", "_", recipe.stem).strip("_") or "questions"
    fields: dict[str, Any] = {"id": "id", "question": "question"}
    if any(row["references"] for row in questions):
        fields["references"] = "references"
    if any(row["task"] for row in questions):
        fields["task"] = "task"
    if any(row["split"] for row in questions):
        fields["metadata"] = ["split"]
    source: dict[str, Any] = {
        "name": name,
        "path": relative(folder / "queries.parquet", recipe),
        "scorer": scorer.scorer,
        "fields": fields,
    }
    if scorer.scorer not in ("given", "none"):
        source["missing_reference"] = "remove"
    return source


def _suggested(questions: Sequence[dict[str, Any]], texts: pa.ChunkedArray) -> ScorerSuggestion:
    """The scorer that suits some of the questions and of the answers' texts."""
    step = max(1, len(questions) // _TRIED)
    tried = questions[::step][:_TRIED]
    outputs = texts.to_pylist()[:: -(-len(texts) // _TRIED) or 1]
    return suggest([q["question"] for q in tried], [q["references"] for q in tried],
                   [[] for _ in tried], outputs)  # fmt: skip


def _metering(found: Sequence[Mapping[str, str]], unread: Sequence[str]) -> dict[str, str]:
    """Gate → reason of waivers of the metering; `unread` says which column may hold the costs."""
    waivers = {one["gate"]: one["reason"] for one in found}
    if unread and "metering:price_unknown" in waivers:
        waivers["metering:price_unknown"] += f"; costs are unknown: {unread[0]}"
    return waivers
