"""Results that somebody has already, as the two tables that a recipe reads, and its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.flows.new_recipe.recorded import AnswerSource, relative
from routeyard.pipelines.audit.answers import Answers
from routeyard.pipelines.audit.errors import scored_without_answer
from routeyard.pipelines.audit.metering import MeteringFinding
from routeyard.pipelines.common.errors import SourceError, few
from routeyard.pipelines.common.staging import place, staging
from routeyard.pipelines.ingest.guess_scorers import ScorerSuggestion, suggest
from routeyard.pipelines.ingest.guessing import Guess
from routeyard.pipelines.ingest.results import AggregatesOnly, Results, read_results
from routeyard.pipelines.ingest.results.values import ASKED, is_weak, unknown_words
from routeyard.schemas.errors import BadInput
from routeyard.schemas.statuses import ANSWERLESS, FAILED, status_of

# Results in their normal form as the two tables that a recipe reads: questions and answers.

#: More tokens than any model takes or gives, and more seconds than any call takes.
_MOST_TOKENS, _MOST_SECONDS = 100_000_000, 1_000_000.0
#: Columns of a recording that are taken as they are.
_PLAIN = ("prompt", "text", "error", "served_model")
#: Columns of the answers that the metering audit reads.
_METERED = ("sample", "text", "served_model", "prompt_tokens", "completion_tokens", "cost_usd",
            "latency_s")  # fmt: skip


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
    table: pa.Table, ids: pa.ChunkedArray, accepted: Collection[str] = ()
) -> tuple[dict[str, pa.Array], dict[str, str], list[str]]:
    """Columns of the answers, the recipe's mapping of them, and values that were left out.

    Args:
        accepted: Kinds of findings whose answers count as their source counts them.
    """
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
    found["status"], decided = _statuses(table, scores, accepted)
    issues += decided
    fields = {
        name: name
        for name, column in found.items()
        if name in ("query", "model") or column.null_count < len(column)
    }
    if len(pc.unique(table.column("sample"))) <= 1:
        del fields["sample"], found["sample"]
    return found, fields, issues


def _statuses(
    table: pa.Table, scores: np.ndarray, accepted: Collection[str]
) -> tuple[pa.Array, list[str]]:
    """Statuses in our words, and sentences on answers that are missing and have a score.

    What the audit calls defective is missing, unless its kind was accepted; other answers that
    their source scores without having them count as it counts them. A word that nobody knows
    beside no text stays, so that the build asks; so does `failed`, which the rest of the row
    explains.
    """
    words = table.column("status").to_pylist()
    known = {word: status_of(word) for word in set(words) if word is not None}
    known |= {word: word for word in known if word.strip().lower() in FAILED}
    found = [known.get(word) for word in words]
    left, kept = Counter[str](), Counter[str]()
    for kind, rows in scored_without_answer(Answers.of(table)).items():
        if kind in accepted:
            continue
        for row in np.flatnonzero(rows):
            status = found[row] if found[row] in ANSWERLESS else None
            found[row] = status or ("error" if kind == "infrastructure_errors" else "unanswered")
            scores[row] = np.nan  # decided here; the file keeps what its source says
            left[str(found[row])] += 1
    for row in np.flatnonzero(~np.isnan(scores)):
        if found[row] in ANSWERLESS:
            kept[str(found[row])] += 1
            found[row] = None
    says = []
    if left:
        policy = ", ".join(f"{status}: scored" for status in sorted(left))
        says.append(
            f"left out of the accuracy: {_counted(left)} that their source scores 0 and nobody "
            f"gave or graded; to count them so, add `statuses: {{{policy}}}` to the recording"
        )
    if kept:
        says.append(f"answers that ended so count as their source counts them: {_counted(kept)}")
    asked = unknown_words(table)
    shown = [w if w in asked else s for w, s in zip(words, found, strict=True)]
    return pa.array(shown, pa.string()), says


def _counted(statuses: Counter[str]) -> str:
    return ", ".join(f"{n:,} `{status}`" for status, n in sorted(statuses.items()))


def metering_waivers(
    questions: Sequence[dict[str, Any]], answers: dict[str, pa.Array]
) -> list[dict[str, str]]:
    """One waiver for each check of the metering that finds something, with what it found."""
    from routeyard.pipelines.audit.metering import audit
    from routeyard.pipelines.common.pool import models_table
    from routeyard.schemas.recipe import Pool

    names = sorted(set(answers["model"].to_pylist()))
    given = [answers[name].is_valid() for name in ("text", "score", "status")]
    cost = answers["cost_usd"]
    table = pa.table(
        {
            "query_id": answers["query"],
            "model_id": answers["model"],
            "sample": pa.nulls(len(answers["query"]), pa.int32()).fill_null(0),
            "cost_source": pc.if_else(cost.is_valid(), "provider", pa.scalar(None, pa.string())),
            **{name: answers[name] for name in _METERED if name in answers},
            "status": pc.fill_null(answers["status"], "ok"),
        }
    ).filter(pc.or_(pc.or_(given[0], given[1]), given[2]))
    asked = pa.table({"query_id": [q["id"] for q in questions],
                      "prompt": [q["question"] for q in questions]})  # fmt: skip
    pool = Pool.model_validate({"models": [{"model_id": name} for name in names]})
    found: dict[str, list[MeteringFinding]] = {}
    for one in audit(table, models_table(pool), queries=asked):
        found.setdefault(one.gate, []).append(one)
    return [
        {
            "gate": gate,
            "reason": f"{sum(one.count for one in some):,} of {table.num_rows:,} answers of the "
            f"source: {'; '.join(dict.fromkeys(one.says for one in some))} "
            f"({few([one.model_id for one in some])})",
        }
        for gate, some in found.items()
    ]


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
