"""Recorded answers in a recipe that `routeyard init` writes: a file, or columns of scores."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from routeyard.pipelines.common import files
from routeyard.pipelines.common import files as named_files
from routeyard.pipelines.common.errors import SourceError, few
from routeyard.pipelines.common.mapping import compile_field, mentions
from routeyard.pipelines.ingest.guess_scorers import answers_of, holds_answers
from routeyard.pipelines.ingest.guessing import Guess, Table, present
from routeyard.pipelines.ingest.results.values import FAMILY, looks_like_money, rank_of
from routeyard.schemas.errors import BadInput

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
        FileRow(row, one.name) for one in paths for row in drawn(files.rows(one), each)
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
        deep = any(one.parent != path for one in paths)
        name, place = path.name, path / ("**" if deep else "") / f"*{paths[0].suffix}"
    return {"name": _name(name), "path": relative(place, recipe)}, rows, unread


def drawn(rows: Iterable[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """At most so many rows from all of a file, in their order; each is as likely as any other.

    What the end of a file holds counts as what its start does (J. Vitter, "Random sampling with a
    reservoir", 1985, algorithm R).
    """
    kept: list[tuple[int, dict[str, Any]]] = []
    draw = random.Random(0)
    for number, row in enumerate(islice(rows, DRAWN_FROM)):
        if number < most:
            kept.append((number, row))
        elif (place := draw.randrange(number + 1)) < most:
            kept[place] = (number, row)
    return [row for _, row in sorted(kept, key=lambda one: one[0])]


def _of_folder(folder: Path) -> tuple[list[Path], list[str]]:
    """The folder's files of the ending that holds most bytes, and a line on the others."""
    found = {ending: sorted(folder.glob(f"**/*.{ending}")) for ending in _ENDINGS}
    if not any(found.values()):
        raise SourceError(
            "the folder holds no file of questions",
            where=str(folder),
            next_step="files that are read: " + ", ".join(f"*.{e}" for e in _ENDINGS),
        )
    found = {ending: paths for ending, paths in found.items() if paths}
    ending = max(found, key=lambda e: sum(path.stat().st_size for path in found[e]))
    others = sorted(path.name for e, paths in found.items() if e != ending for path in paths)
    return found[ending], [f"{few(others)} (only *.{ending} files are read)"] if others else []


def _of_hub(
    hub_id: str, config: str | None, split: str | None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    from routeyard.pipelines.ingest import sources as hub

    where, split = f"source {hub_id!r}", split or "test"
    commit = hub.resolve(hub_id, None, where=where)
    rows = hub.hub_rows(
        hub_id, config=config, split=split, revision=commit, streaming=True, where=where
    )
    source = {"name": _name(hub_id.rpartition("/")[2]), "kind": "hub", "hub_id": hub_id}
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
    found = answers_of(table.rows)
    if found is None or guess.given("question"):
        return
    # `answer text` has the name of a question as well as that of an answer.
    named = why.startswith("by its name") and asked != found.get("text")
    if not holds_answers(table.rows, table.values(asked) if named else None):
        return
    models = sorted({str(one) for one in table.values(found["model"])})
    columns = yaml.safe_dump(found, default_flow_style=True, sort_keys=False, width=10_000).strip()
    of = "ANSWERS" if Path(origin).is_dir() else repr(origin)
    raise BadInput(
        f"these rows are recorded answers, not questions: {found['model']!r} names models "
        f"({few(models)}); the columns read as {columns}",
        where=origin + (f" (beside it are {'; '.join(unread)})" if unread else ""),
        next_step=f"routeyard init {recipe} --from QUESTIONS --recording {of}, where "
        "QUESTIONS is the file of the questions; or name the question's column with --question",
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
    paths = named_files.expand(str(place), base=Path.cwd(), where="--recording")
    first = Table(drawn((row for path in paths for row in files.rows(path)), LOOKED_AT))
    columns = ", ".join(map(str, first.rows[0] if first.rows else ()))
    found = answers_of(first.rows)
    if found is None:
        raise BadInput(
            "the recording names no model, or holds neither answer nor score",
            where=f"{recording}, columns {columns}",
            next_step="call the columns 'model' and 'output' (or 'score'), or write "
            "collect.recorded by hand: docs/howto/import.md",
        )
    unread = _unread(first, " ".join(found.values()))
    lacks = []
    if "query" not in found:
        lacks.append(f"no column of the recording names the question: fields.query ({columns})")
        found["query"] = "id"
    # A column that is not there names no row.
    read = {name: found[name] for name in ("model", "query") if name != "query" or not lacks}
    models, asked, nameless, count = _named(paths, read)
    if not lacks:
        lacks = _join(asked, found["query"], guess, table)
    entry = {"path": relative(place, recipe), "fields": found}
    return AnswerSource(
        pool={"models": [{"model_id": name} for name in sorted(models)]},
        collect={"provider": "recorded", "recorded": [entry]},
        words=f"{len(models)} models that {place.name} holds answers of",
        waivers=_waivers(found, count, [one for one in unread if looks_like_money(one)]),
        unread=[f"column {one!r} of the recording" for one in unread],
        lacks=lacks + nameless,
        graded="text" not in found or ("score" in found and "references" not in guess.fields),
        outputs=[str(text) for text in first.values(found.get("text", "")) if text],
    )


def _unread(first: Table, mapped: str) -> list[str]:
    """Columns that hold something, and that no mapping names."""
    return [one for one in first.columns if not mentions(mapped, one) and present(first.seen(one))]


def _named(
    paths: Sequence[Path], found: Mapping[str, str]
) -> tuple[set[str], set[str], list[str], int]:
    """Models and questions that all rows of a recording name, what rows lack of them, and rows."""
    read = {name: compile_field(of, where="--recording") for name, of in found.items()}
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
        f"{'model' if name == 'model' else 'question'} in {found[name]!r} ({few(places)}): give "
        "them one, or take them out; a build stops at them"
        for name, places in without.items()
        if places and seen[name]
    ]
    return seen["model"], seen["query"], lacks, count


def _join(asked: set[str], query: str, guess: Guess, table: Table) -> list[str]:
    """Settle which column of the questions holds what the recording's `query` names."""

    def share(seen: Sequence[Any]) -> float:
        texts = [str(one) for one in seen]
        return sum(text in asked for text in texts) if len(set(texts)) == len(texts) else 0.0

    if guess.given("id") or ("id" in guess.fields and share(table.values(guess.fields["id"]))):
        return []
    best = max(table.columns, key=lambda name: share(table.seen(name)))
    if not share(table.seen(best)):
        return [
            f"no column of the questions holds the values of {query!r} of the recording "
            f"({few(sorted(asked))}): map fields.id of the source and fields.query to the same id"
        ]
    guess.take("id", best, f"its values are those of {query!r} of the recording")
    return []


def _waivers(found: Mapping[str, str], rows: int, unread: Sequence[str]) -> list[dict[str, str]]:
    """Gates that a recording without these columns cannot pass; the card prints the reasons.

    Args:
        rows: Rows of the recording, all of which a waiver is about.
        unread: Columns that look like costs, and were not read.
    """
    usage = {"prompt_tokens", "completion_tokens"} <= found.keys()
    waivers = {}
    if not usage:
        waivers["metering:usage_missing"] = f"{rows:,} answers are recorded without usage."
    if "cost_usd" not in found:
        waivers["metering:price_unknown"] = (
            f"The pool states no prices of the models of {rows:,} answers; fill in price_in, "
            "price_out and price_date."
            if usage
            else f"{rows:,} answers are recorded without costs."
        )
        if unread:
            waivers["metering:price_unknown"] = (
                f"Costs are unknown: {few(unread)} look like costs and were not read."
            )
    return [{"gate": gate, "reason": reason} for gate, reason in waivers.items()]
