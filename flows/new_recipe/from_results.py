"""Results that somebody has already, as the two tables that a recipe reads, and its parts."""

from __future__ import annotations

import json
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from routeyard.pipelines.audit.answers import Answers
from routeyard.pipelines.audit.errors import scored_without_answer
from routeyard.pipelines.audit.metering import MeteringFinding, audit
from routeyard.pipelines.common import files
from routeyard.pipelines.common.errors import SourceError, few
from routeyard.pipelines.common.mapping import compile_field, mentions
from routeyard.pipelines.common.sql import runner
from routeyard.pipelines.common.staging import place, staging
from routeyard.pipelines.common.usage import MOST_TOKENS
from routeyard.pipelines.ingest.guess_scorers import (
    ScorerSuggestion,
    answers_of,
    holds_answers,
    suggest,
)
from routeyard.pipelines.ingest.guessing import Guess, Table, guess_columns, present
from routeyard.pipelines.ingest.results import AggregatesOnly, Results, read_results
from routeyard.pipelines.ingest.results.values import (
    ASKED,
    FAMILY,
    is_weak,
    looks_like_money,
    rank_of,
    unknown_words,
)
from routeyard.schemas.errors import BadInput
from routeyard.schemas.statuses import ANSWERLESS, FAILED, status_of

# Some rows of the questions: from all of a file or folder, or the first of a hub dataset.

#: Rows that the guess looks at, and rows that they are drawn from.
LOOKED_AT, DRAWN_FROM = 200, 1_000_000
_ENDINGS = ("parquet", "jsonl", "ndjson", "json", "csv", "tsv")


class FileRow(dict[str, Any]):
    """A row that knows its file."""

    def __init__(self, row: Mapping[str, Any], file: str):
        super().__init__(row)
        self.file = file


def first_rows(
    origin: str, recipe: Path, config: str | None, split: str | None
) -> tuple[dict[str, Any], list[dict[str, Any]], list[str]]:
    """The source as a recipe names it, its first rows, and files beside it that are not read.

    Raises:
        SourceError: there is no file, folder or dataset of questions.
    """
    path = Path(origin).expanduser()
    if not path.exists():
        if re.fullmatch(r"[\w.-]+/[\w.-]+", origin) and path.suffix[1:] not in _ENDINGS:
            return *_of_hub(origin, config, split), []
        raise SourceError(
            f"there is no file or folder {origin}",
            where=str(path.absolute()),
            next_step="name a file, a folder, or a hub dataset as owner/name",
        )
    paths, unread = _of_folder(path) if path.is_dir() else ([path], [])
    each = max(1, LOOKED_AT // len(paths))
    rows: list[dict[str, Any]] = [
        FileRow(row, item.name) for item in paths for row in drawn(files.rows(item), each)
    ]
    if not rows:
        raise SourceError(
            "the file has no rows",
            where=str(paths[0]),
            next_step="name a file with a row for each question or answer, below its header",
        )
    if len(paths) == 1:
        name, place = paths[0].name.split(".")[0], paths[0]
        rows = [dict(row) for row in rows]
    else:
        deep = any(item.parent != path for item in paths)
        name, place = path.name, path / ("**" if deep else "") / f"*{paths[0].suffix}"
    return {"name": _name(name), "path": relative(place, recipe)}, rows, unread


def drawn(rows: Iterable[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """At most so many rows from all of a file, in their order; each is as likely as any other.

    What the end of a file holds counts as what its start does (J. Vitter, "Random sampling with a
    reservoir", 1985, algorithm R).
    """
    sample: list[tuple[int, dict[str, Any]]] = []
    draw = random.Random(0)
    for number, row in enumerate(islice(rows, DRAWN_FROM)):
        if number < most:
            sample.append((number, row))
        elif (place := draw.randrange(number + 1)) < most:
            sample[place] = (number, row)
    return [row for _, row in sorted(sample, key=lambda item: item[0])]


def _of_folder(folder: Path) -> tuple[list[Path], list[str]]:
    """The folder's files of the ending that holds most bytes, and a line on the others."""
    result = {ending: sorted(folder.glob(f"**/*.{ending}")) for ending in _ENDINGS}
    if not any(result.values()):
        raise SourceError(
            "the folder holds no file of questions",
            where=str(folder),
            next_step="files that are read: " + ", ".join(f"*.{e}" for e in _ENDINGS),
        )
    result = {ending: paths for ending, paths in result.items() if paths}
    ending = max(result, key=lambda e: sum(path.stat().st_size for path in result[e]))
    others = sorted(path.name for e, paths in result.items() if e != ending for path in paths)
    return result[ending], [f"{few(others)} (only *.{ending} files are read)"] if others else []


def _of_hub(
    hub_id: str, config: str | None, split: str | None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    from routeyard.pipelines.ingest import sources as hub

    where, split = f"source {hub_id!r}", split or "test"
    commit = hub.resolve(hub_id, None, where=where)
    rows = hub.hub_rows(
        hub_id, config=config, split=split, revision=commit, streaming=True, where=where
    )
    source = {"name": _name(hub_id.rpartition("/")[2]), "hub_id": hub_id}
    source |= {"split": split, "revision": commit, **({"config": config} if config else {})}
    return source, list(islice(rows, LOOKED_AT))


def relative(path: Path, recipe: Path) -> str:
    """The path as seen from the recipe's folder; `$` would be read as a variable."""
    return os.path.relpath(path.absolute(), recipe.absolute().parent)


def _name(text: str) -> str:
    return re.sub(r"[^\w.-]+", "_", text).strip("_") or "questions"


def one_kind(rows: Sequence[Mapping[str, Any]], question: Any, origin: str) -> None:
    """Refuse a source with rows of two kinds, such as questions and answers to them.

    Args:
        question: The mapping of the question, as guessed; None where none was found: then rows
            that name a model are taken for answers, and without them the recipe states
            what it lacks.

    Raises:
        BadInput: says how many rows are of another kind than the first, and their columns.
    """
    if question is None:
        names = (str(name).lower() for row in rows for name in row)
        alike = not any(name.startswith(("model", "llm")) for name in names)
    else:
        alike = "{{" in str(question) or all(question in row for row in rows)
    # Of another kind: less than half of the columns of both are common.
    first = rows[0].keys()
    other = [row for row in rows if 2 * len(row.keys() & first) < len(row.keys() | first)]
    if alike or not other:
        return
    at = getattr(other[0], "file", None) or f"row {rows.index(other[0]) + 1}"
    raise BadInput(
        f"rows of different kinds: the first has {', '.join(map(str, first))}; "
        f"{len(other):,} of {len(rows):,} looked at, {at} first, have "
        f"{', '.join(map(str, other[0]))}",
        where=origin,
        next_step="name only the file of the questions; recorded answers belong into another "
        "file, under collect.recorded",
    )


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """Where a recipe's answers come from, and what a person has to add.

    Attributes:
        words: Where the models come from, for the recipe's comment.
        graded: Grades that come with the data decide: no rule can read the answers.
        known_issues: What the card says of the answers.
        has_texts: Questions have texts, and not only ids.
        unreadable: What becomes of answers that no scorer can read, where it is not the default.
        unread: What of the answers was not read.
        outputs: Some answers, as the models wrote them: their length says which scorers fit.
    """

    pool: dict[str, Any]
    collect: dict[str, Any]
    words: str
    waivers: list[dict[str, str]]
    lacks: list[str] = field(default_factory=list)
    graded: bool = False
    known_issues: list[str] = field(default_factory=list)
    has_texts: bool = True
    unreadable: str | None = None
    outputs: Sequence[str] = ()
    unread: Sequence[str] = ()


def refuse_answers(
    table: Table, guess: Guess, origin: str, recipe: Path, unread: Sequence[str]
) -> None:
    """Refuse rows that are answers of models: they are no questions, whatever their columns hold.

    Raises:
        BadInput: names what was found, and how questions and answers come into one recipe.
    """
    import yaml

    asked, why = guess.fields.get("question"), guess.reasons.get("question", "")
    result = answers_of(table.rows)
    if result is None or guess.is_named("question"):
        return
    # `answer text` has the name of a question as well as that of an answer.
    named = why.startswith("by its name") and asked != result.get("text")
    if not holds_answers(table.rows, table.values(asked) if named else None):
        return
    models = sorted({str(item) for item in table.values(result["model"])})
    columns = yaml.safe_dump(result, default_flow_style=True, sort_keys=False, width=10_000).strip()
    of = "ANSWERS" if Path(origin).is_dir() else repr(origin)
    raise BadInput(
        f"these rows are recorded answers, not questions: {result['model']!r} names models "
        f"({few(models)}); the columns read as {columns}",
        where=origin + (f" (beside it are {'; '.join(unread)})" if unread else ""),
        next_step=f"routeyard init {recipe} --from QUESTIONS --recording {of}, where "
        "QUESTIONS is the file of the questions: the same, where its rows state question and "
        "reference; or name the question's column with --question",
    )


def names_models(table: Table, guess: Guess) -> bool:
    """Whether rows are of models and ask nothing: a column names models that come again.

    A question that a column is named for stays one, whoever wrote it.
    """
    if guess.reasons.get("question", "").startswith(("by its name", "as given")):
        return False
    for column in table.columns:
        names = [str(value) for value in table.seen(column) if value not in (None, "")]
        known = {name for name in names if FAMILY.search(name)}
        if names and 2 * len(known) >= len({*names}) and 2 * len({*names}) <= len(names):
            return rank_of(column, "arm") is not None
    return False


def from_recording(recording: str, recipe: Path, guess: Guess, table: Table) -> AnswerSource:
    """Pool and `collect` for a file with one row per answer; may settle the questions' id.

    Args:
        guess: Of the questions; gets the id whose values the recording names.
        table: The questions.

    Raises:
        BadInput: the file cannot be read, or its columns say neither model nor answer.
    """
    place = Path(recording).expanduser()
    paths = files.expand(str(place), base=Path.cwd(), where="--recording")
    first = Table(drawn((row for path in paths for row in files.rows(path)), LOOKED_AT))
    columns = ", ".join(map(str, first.rows[0] if first.rows else ()))
    answers = answers_of(first.rows)
    if answers is None:
        raise BadInput(
            "the recording names no model, or holds neither answer nor score",
            where=f"{recording}, columns {columns}",
            next_step="call the columns 'model' and 'output' (or 'score'), or write "
            "collect.recorded by hand: docs/howto/import.md",
        )
    unread = _unread(first, " ".join(answers.values()))
    lacks = []
    if "query" not in answers and (question := guess.plain("question")) in first.columns:
        answers["query"] = question
    if "query" not in answers:
        lacks.append(f"no column of the recording names the question: fields.query ({columns})")
        answers["query"] = "id"
    # A column that is not there names no row.
    read = {name: answers[name] for name in ("model", "query") if name != "query" or not lacks}
    models, asked, nameless, count = _named(paths, read)
    if not lacks:
        lacks = _join(asked, answers["query"], guess, table)
    entry = {"path": relative(place, recipe), "fields": answers}
    return AnswerSource(
        pool={"models": [{"model_id": name} for name in sorted(models)]},
        collect={"provider": "recorded", "recorded": [entry]},
        words=f"{len(models)} models that {place.name} holds answers of",
        waivers=_waivers(answers, count, unread),
        unread=[
            f"column {item!r} of the recording" for item in unread if item not in table.columns
        ],
        lacks=lacks + nameless,
        graded="text" not in answers or ("score" in answers and "references" not in guess.fields),
        outputs=[str(text) for text in first.values(answers.get("text", "")) if text],
    )


def questions_beside(
    origin: str, recording: str | None, recipe: Path, fields: Mapping[str, str]
) -> tuple[str, list[str]]:
    """The file of the questions, and what a person is asked. Where rows of answers state their
    questions as well, these are written into `NAME-data`, one row each, without what was answered.

    A column is of the question where nine in ten questions have one value of it; of several, the
    one that most rows have is taken.

    Raises:
        BadInput: the columns do not say which row is of which question.
    """
    answers = Path(origin)
    if not recording or not answers.is_file() or not answers.samefile(recording):
        return origin, []
    rows = list(files.rows(answers))
    looked = drawn(rows, LOOKED_AT)
    roles = answers_of(looked) or {}
    key = fields.get("question") or roles.get("query") or guess_columns(looked).plain("question")
    roles.pop("query", None)
    if not key or "{{" in key or key not in rows[0]:
        raise BadInput(
            "no column of the answers names their question",
            where=str(answers),
            next_step="name it with --question, or give another file with the questions: --from. "
            f"Columns: {', '.join(map(str, rows[0]))}",
        )
    seen = _values(rows, key, " ".join(roles.values()))
    several = Counter(n for mine in seen.values() for n, values in mine.items() if len(values) > 1)
    kept = [name for name in rows[0] if several[name] * 10 <= len(seen)]
    lines = [
        json.dumps({n: json.loads(_most(mine[n])) for n in kept if n in mine}, ensure_ascii=False)
        for mine in seen.values()
    ]
    folder, name = recipe.with_name(f"{recipe.stem}-data"), f"{answers.stem}.jsonl"
    _write(folder, {name: lambda path: path.write_text("\n".join([*lines, ""]), "utf-8")})
    return str(folder / name), [
        f"{several[n]:,} of {len(seen):,} questions have several {n!r}; the one that most answers "
        "have is taken"
        for n in kept
        if several[n]
    ]


def _values(
    rows: Sequence[Mapping[str, Any]], key: str, mapped: str
) -> dict[str, dict[str, Counter[str]]]:
    """Question → column that no mapping names → how often it has which value, as JSON."""
    names = [name for name in rows[0] if not mentions(mapped, name)]
    seen: dict[str, dict[str, Counter[str]]] = {}
    for row in rows:
        mine = seen.setdefault(str(row.get(key)), {})
        for name in names:
            if row.get(name) not in (None, ""):
                mine.setdefault(name, Counter())[json.dumps(row[name], default=str)] += 1
    return seen


def _most(values: Counter[str]) -> str:
    """The most frequent value, of several the first in order."""
    return min(values, key=lambda value: (-values[value], value))


def _unread(first: Table, mapped: str) -> list[str]:
    """Columns that hold something, and that no mapping names."""
    return [c for c in first.columns if not mentions(mapped, c) and present(first.seen(c))]


def _named(
    paths: Sequence[Path], fields: Mapping[str, str]
) -> tuple[set[str], set[str], list[str], int]:
    """Models and questions that all rows of a recording name, what rows lack of them, and rows."""
    read = {name: compile_field(of, where="--recording") for name, of in fields.items()}
    seen: dict[str, set[str]] = {name: set() for name in ("model", "query")}
    without: dict[str, list[str]] = {name: [] for name in read}
    count = 0
    for path in paths:
        for number, row in enumerate(files.rows(path), start=1):
            count += 1
            for name, of in read.items():
                if (value := of(row)) in (None, ""):
                    without[name].append(f"row {number} of {path.name}")
                else:
                    seen[name].add(str(value))
    lacks = [
        f"{len(places)} of {count} rows of the recording name no "
        f"{'model' if name == 'model' else 'question'} in {fields[name]!r} ({few(places)}): give "
        "them one, or take them out; a build stops at them"
        for name, places in without.items()
        if places and seen[name]
    ]
    return seen["model"], seen["query"], lacks, count


def _join(asked: set[str], query: str, guess: Guess, table: Table) -> list[str]:
    """Settle which column of the questions holds what the recording's `query` names."""

    def share(seen: Sequence[Any]) -> float:
        texts = [str(item) for item in seen]
        return sum(text in asked for text in texts) if len(set(texts)) == len(texts) else 0.0

    if guess.is_named("id") or ("id" in guess.fields and share(table.values(guess.fields["id"]))):
        return []
    best = max(table.columns, key=lambda name: share(table.seen(name)))
    if not share(table.seen(best)):
        return [
            f"no column of the questions holds the values of {query!r} of the recording "
            f"({few(sorted(asked))}): map fields.id of the source and fields.query to the same id"
        ]
    guess.take("id", best, f"its values are those of {query!r} of the recording")
    return []


def _waivers(fields: Mapping[str, str], rows: int, unread: Sequence[str]) -> list[dict[str, str]]:
    """Gates that a recording without these columns cannot pass; the card prints the reasons.

    Args:
        rows: Rows of the recording, all of which a waiver is about.
        unread: Columns that were not read.
    """
    usage = {"prompt_tokens", "completion_tokens"} <= fields.keys()
    waivers = {}
    if not usage:
        waivers["metering:usage_missing"] = f"{rows:,} answers are recorded without usage."
        if tokens := [name for name in unread if "tok" in name.lower()]:
            waivers["metering:usage_missing"] = (
                f"Usage is unknown: {few(tokens)} look like counts of tokens and were not read."
            )
    if "cost_usd" not in fields:
        waivers["metering:price_unknown"] = (
            f"The pool states no prices of the models of {rows:,} answers; fill in price_in, "
            "price_out and price_date."
            if usage
            else f"{rows:,} answers are recorded without costs."
        )
        if money := [name for name in unread if looks_like_money(name)]:
            waivers["metering:price_unknown"] = (
                f"Costs are unknown: {few(money)} look like costs and were not read."
            )
    return [{"gate": gate, "reason": reason} for gate, reason in waivers.items()]


# Results in their normal form as the two tables that a recipe reads: questions and answers.

#: More seconds than any call takes.
_MOST_SECONDS = 1_000_000.0
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


def questions_of(
    table: pa.Table, ids: pa.ChunkedArray
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """One row per question, and field → questions whose answers state several values of it."""
    stated = table.select(["suite", "prompt", "reference", "split"]).append_column("id", ids)
    with runner(Path(__file__).with_name("questions.sql"), {"answers": stated}) as run:
        questions = run.table("questions").to_pylist()
    fields = ("prompt", "reference")
    return questions, {n: sum(row.pop(f"several_{n}") for row in questions) for n in fields}


def answers_table(
    table: pa.Table, ids: pa.ChunkedArray, accepted: Collection[str] = ()
) -> tuple[dict[str, pa.Array], dict[str, str], list[str]]:
    """Columns of the answers, the recipe's mapping of them, and values that were left out.

    Args:
        accepted: Kinds of findings whose answers count as their source counts them.
    """
    result: dict[str, Any] = {
        "query": ids, "model": table.column("arm"), "sample": table.column("sample"),
    }  # fmt: skip
    issues: list[str] = []
    for name in _PLAIN:
        result[name] = table.column(name)
    scores = _numbers(table, "score")
    outside = ~np.isnan(scores) & ((scores < 0) | (scores > 1))
    issues += _said(table, outside, "scores that are not in [0, 1]", scores)
    result["score"] = pa.array(np.where(outside, np.nan, scores), from_pandas=True)
    answered = ~np.isnan(scores) | np.array(table.column("text").is_valid())
    for name in ("prompt_tokens", "completion_tokens", "cost_usd", "latency_s"):
        values = _numbers(table, name)
        wrong = ~np.isnan(values) & _senseless(name, values)
        unknown = (values == 0) & answered
        issues += _said(table, wrong, f"values of {name} that cannot be", values)
        issues += _said(table, unknown, f"zeros of {name} beside an answer: unknown, not 0", values)
        known = pa.array(np.where(wrong | unknown, np.nan, values), from_pandas=True)
        result[name] = known.cast(pa.int64()) if name.endswith("tokens") else known
    result["status"], decided = _statuses(table, scores, accepted)
    issues += decided
    fields = {
        name: name
        for name, column in result.items()
        if name in ("query", "model") or column.null_count < len(column)
    }
    if len(pc.unique(table.column("sample"))) <= 1:
        del fields["sample"], result["sample"]
    return result, fields, issues


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
    results = [known.get(word) for word in words]
    left, counted = Counter[str](), Counter[str]()
    for kind, rows in scored_without_answer(Answers.of(table)).items():
        if kind in accepted:
            continue
        for row in np.flatnonzero(rows):
            status = results[row] if results[row] in ANSWERLESS else None
            results[row] = status or ("error" if kind == "infrastructure_errors" else "unanswered")
            scores[row] = np.nan  # decided here; the file keeps what its source says
            left[str(results[row])] += 1
    for row in np.flatnonzero(~np.isnan(scores)):
        if results[row] in ANSWERLESS:
            counted[str(results[row])] += 1
            results[row] = None
    says = []
    if left:
        policy = ", ".join(f"{status}: scored" for status in sorted(left))
        says.append(
            f"left out of the accuracy: {_counted(left)} that their source scores 0 and nobody "
            f"gave or graded; to count them so, add `statuses: {{{policy}}}` to the recording"
        )
    if counted:
        says.append(f"answers that ended so count as their source counts them: {_counted(counted)}")
    asked = unknown_words(table)
    shown = [w if w in asked else s for w, s in zip(words, results, strict=True)]
    return pa.array(shown, pa.string()), says


def _counted(statuses: Counter[str]) -> str:
    return ", ".join(f"{n:,} `{status}`" for status, n in sorted(statuses.items()))


def metering_waivers(
    questions: Sequence[dict[str, Any]], answers: dict[str, pa.Array], unread: Sequence[str]
) -> dict[str, str]:
    """Gate → reason, for each check of the metering that finds something: what it found.

    Args:
        unread: Sentences on columns that may hold the costs.
    """
    from routeyard.pipelines.common.pool import models_table
    from routeyard.schemas.recipe import Pool

    names = sorted(set(answers["model"].to_pylist()))
    valid = [answers[name].is_valid() for name in ("text", "score", "status")]
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
    ).filter(pc.or_(pc.or_(valid[0], valid[1]), valid[2]))
    asked = pa.table({"query_id": [q["id"] for q in questions],
                      "prompt": [q["question"] for q in questions]})  # fmt: skip
    pool = Pool.model_validate({"models": [{"model_id": name} for name in names]})
    result: dict[str, list[MeteringFinding]] = {}
    for item in audit(table, models_table(pool), queries=asked):
        result.setdefault(item.gate, []).append(item)
    waivers = {
        gate: f"{sum(f.count for f in some):,} of {table.num_rows:,} answers of the source: "
        f"{'; '.join(dict.fromkeys(f.says for f in some))} ({few([f.model_id for f in some])})"
        for gate, some in result.items()
    }
    if unread and "metering:price_unknown" in waivers:
        waivers["metering:price_unknown"] += f"; costs are unknown: {unread[0]}"
    return waivers


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    values: np.ndarray = table.column(name).to_numpy().astype(float)
    return values


def _senseless(name: str, values: np.ndarray) -> np.ndarray:
    """Which values cannot be: below zero, no whole number of tokens, more than anybody takes."""
    most = {"cost_usd": np.finfo(float).max, "latency_s": _MOST_SECONDS}.get(name, MOST_TOKENS)
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


def _write(folder: Path, written: Mapping[str, Callable[[Path], object]]) -> None:
    if folder.exists():
        raise BadInput(
            f"{folder} exists already and is not overwritten",
            where=str(folder),
            next_step="give the recipe another name, or remove the folder",
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with staging(folder) as made:
        for name, write in written.items():
            write(made / name)
        place(made, folder)


_QUESTIONS = pa.schema(
    [("id", pa.string()), ("question", pa.string()), ("references", pa.list_(pa.string())),
     ("task", pa.string()), ("split", pa.string())]
)  # fmt: skip


#: Kinds of notes that the card repeats.
_ISSUES = ("left_out", "value", "status", "unpriced", "columns")
#: Questions that a scorer is tried on.
_TRIED = 200


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


def recorded_results(
    origin: str, mapping: Mapping[str, str] = MappingProxyType({}), *, answers: bool = False
) -> Results | NoResults:
    """Somebody's results at a place, or why there are questions, or nothing that grades answers.

    Args:
        mapping: Role → column, of `parse_map`; then there are answers, or an error says why not.
        answers: A person says that answers of models are there: a column `answer` beside names of
            models is what they said.

    Raises:
        AggregatesOnly: the figures there are of many questions each.
    """
    path = Path(origin).expanduser()
    if not path.exists() and not mapping:
        return NoResults()
    try:
        results = read_results(path, mapping)
    except AggregatesOnly:
        raise
    except SourceError as error:
        if mapping:
            raise
        return NoResults(error)
    return results if mapping else _answers_or_questions(results, answers)


def _answers_or_questions(results: Results, answers: bool) -> Results | NoResults:
    """The results, or why their rows may as well be questions."""
    table = results.table
    scored = table.column("score").null_count < table.num_rows
    referenced = table.column("reference").null_count < table.num_rows
    # Without the name of a model, a table of questions with some figure looks the same.
    guesses = [n.says for n in results.notes if n.about == "arm" and n.kind == "question"]
    unsure = is_weak(results.columns.get("text", "")) and not (answers and not guesses)
    if not scored and (not referenced or unsure):
        return NoResults()
    # Several trials of one question are no questions.
    trials = "sample" in results.columns and (pc.max(table.column("sample")).as_py() or 0) > 0
    asked = not trials and table.column("prompt").null_count < table.num_rows
    answered = "text" in results.columns and not is_weak(results.columns["text"])
    weak = asked or is_weak(results.columns.get("score", ""), "score")
    if not guesses or not weak or answered:
        return results
    if scored and results.columns.get("arm") == "(model)":
        return NoResults(doubt=guesses[0], columns=_like_scores(table))
    return NoResults()


def _like_scores(table: pa.Table) -> frozenset[str]:
    """Columns whose largest figure is at least half of a scale, and none outside of it.

    Counts and ids, which other columns of figures hold, are far below or above.
    """
    ranges = table.group_by("arm").aggregate([("score", "min"), ("score", "max")]).to_pylist()
    return frozenset(
        row["arm"]
        for row in ranges
        if row["score_max"] is not None and row["score_min"] >= 0 and 0.5 <= row["score_max"] <= 1
    )


def from_results(
    results: Results, origin: str, recipe: Path, accepted: Mapping[str, str] = MappingProxyType({})
) -> tuple[dict[str, Any], AnswerSource, ScorerSuggestion, Guess]:
    """Write `NAME-data` with questions and answers beside the recipe, and return its parts:
    the questions, as a recipe names them, the answers, the scorer and what was taken for what.

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
    questions, several = questions_of(table, ids)
    doubts = [
        f"{several[key]:,} of {len(questions):,} questions have several {word}; the one that most "
        "answers have is taken"
        for key, word in (("prompt", "texts"), ("reference", "references"))
        if several[key]
    ]
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
    tables = {
        "queries.parquet": pa.Table.from_pylist(questions, _QUESTIONS),
        "responses.parquet": pa.table(answers),
    }
    _write(folder, {name: partial(pq.write_table, item) for name, item in tables.items()})
    asked = [note.says for note in results.notes if note.kind in ASKED]
    known = [note.says for note in results.notes if note.kind in _ISSUES]
    models = sorted(set(answers["model"].to_pylist()))
    unread = [item.says for item in results.notes if item.about == "cost"]
    waivers = {
        **metering_waivers(questions, answers, unread),
        **{gate: f"Accepted as it is: {says}" for gate, says in accepted.items()},
    }
    recorded: dict[str, Any] = {"path": relative(folder / "responses.parquet", recipe)}
    if several["prompt"]:
        # `doubts` says so; the build counts those whose text is not the one that was taken.
        recorded["other_questions"] = "keep"
    source = AnswerSource(
        pool={"models": [{"model_id": name} for name in models]},
        collect={"provider": "recorded", "recorded": [{**recorded, "fields": fields}]},
        words=f"{len(models)} models that {Path(origin).name} holds answers of",
        waivers=[{"gate": gate, "reason": reason} for gate, reason in waivers.items()],
        lacks=[f"your word: {item}" for item in [*asked, *doubts]],
        graded=graded,
        known_issues=[*known, *issues],
        has_texts=has_texts,
        unread=[item.says for item in results.notes if item.kind in ("columns", "unpriced")],
    )
    places = {name: _said_place(column) for name, column in results.columns.items()}
    guess = Guess([], places, dict.fromkeys(results.columns, "by its name and values"))
    return _source(recipe, folder, scorer, questions), source, scorer, guess


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
    name = re.sub(r"[^\w.-]+", "_", recipe.stem).strip("_") or "questions"
    there = [item for item in ("references", "task") if any(row[item] for row in questions)]
    fields: dict[str, Any] = {item: item for item in ("id", "question", *there)}
    if any(row["split"] for row in questions):
        fields["metadata"] = ["split"]
    source: dict[str, Any] = {
        "name": name,
        "path": relative(folder / "queries.parquet", recipe),
        "scorer": scorer.scorer,
        "fields": fields,
    }
    if scorer.scorer not in ("given", "none"):
        source["incomplete"] = "remove"
    return source


def _suggested(questions: Sequence[dict[str, Any]], texts: pa.ChunkedArray) -> ScorerSuggestion:
    """The scorer that suits some of the questions and of the answers' texts."""
    step = max(1, len(questions) // _TRIED)
    tried = questions[::step][:_TRIED]
    outputs = texts.to_pylist()[:: -(-len(texts) // _TRIED) or 1]
    return suggest([q["question"] for q in tried], [q["references"] for q in tried],
                   [[] for _ in tried], outputs)  # fmt: skip
