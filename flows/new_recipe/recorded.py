"""Recorded answers in a recipe that `routeyard init` writes: a file, or columns of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from flows.new_recipe.first_rows import LOOKED_AT, relative
from pipelines.errors import BadInput
from pipelines.ingest.guessing.recordings import answers_of, as_flow, holds_answers
from pipelines.ingest.guessing.values import Guess, Row, reach, values


@dataclass(frozen=True, slots=True)
class Answers:
    """What a recipe says where its answers are recorded, and what a person has to add."""

    pool: dict[str, Any]
    collect: dict[str, Any]
    words: str
    waivers: list[dict[str, str]]
    lacks: list[str]
    #: Whether the grades that come with the data decide: no rule can read the answers.
    graded: bool


def refuse_answers(
    rows: Sequence[Row], guess: Guess, origin: str, recipe: Path, unread: Sequence[str]
) -> None:
    """Stop where rows are answers of models: they are no questions, whatever their columns hold.

    Raises:
        BadInput: says what was seen, and how questions and answers come into one recipe.
    """
    asked, why = guess.fields.get("question"), guess.reasons.get("question", "")
    found = answers_of(rows)
    if found is None or why == "as given":
        return
    # `answer text` has the name of a question as well as that of an answer.
    named = why.startswith("by its name") and asked != found.get("text")
    if not holds_answers(rows, values(asked, rows) if named else None):
        return
    models = sorted({str(one) for one in values(found["model"], rows)})
    of = "ANSWERS" if Path(origin).is_dir() else repr(origin)
    beside = f" (beside it lie {'; '.join(unread)})" if unread else ""
    raise BadInput(
        f"these rows are recorded answers, not questions: {found['model']!r} names models "
        f"({_few(models)}); the columns read as {as_flow(found)}",
        where=origin + beside,
        next_step=f"routeyard init {recipe} --from QUESTIONS --recording {of}, where "
        "QUESTIONS is the file of the questions; or name the question's column with --question",
    )


def from_recording(recording: str, recipe: Path, guess: Guess, rows: Sequence[Row]) -> Answers:
    """Pool and `collect` for a file with one row per answer; may settle the questions' id.

    Args:
        guess: Of the questions; gets the id whose values the recording names.
        rows: Of the questions.

    Raises:
        BadInput: the file cannot be read, or its columns say neither model nor answer.
    """
    from pipelines.io import files, named_files

    place = Path(recording).expanduser()
    paths = named_files.expand(str(place), base=Path.cwd(), where="--recording")
    first = list(islice((row for path in paths for row in files.rows(path)), LOOKED_AT))
    found = answers_of(first)
    if found is None:
        raise BadInput(
            "the recording names no model, or holds neither answer nor score",
            where=f"{recording}, columns {', '.join(map(str, first[0] if first else ()))}",
            next_step="call the columns 'model' and 'output' (or 'score'), or write "
            "collect.recorded by hand: docs/howto/import.md",
        )
    lacks = []
    if "query" not in found:
        columns = ", ".join(map(str, first[0]))
        lacks.append(f"no column of the recording names the question: fields.query ({columns})")
        found["query"] = "id"
    models, asked, nameless = _named(paths, found)
    if not lacks:
        lacks = _join(asked, found["query"], guess, rows)
    lacks += nameless
    return Answers(
        pool={"models": [{"model_id": name} for name in sorted(models)]},
        collect={
            "provider": "recorded",
            "recorded": [{"path": relative(place, recipe), "fields": found}],
        },
        words=f"{len(models)} models that {place.name} holds answers of",
        waivers=_waivers(found),
        lacks=lacks,
        graded="text" not in found or ("score" in found and "references" not in guess.fields),
    )


def _named(paths: Sequence[Path], found: Mapping[str, str]) -> tuple[set[str], set[str], list[str]]:
    """Models and questions that all rows of a recording name, and what rows lack of them."""
    from pipelines.io import files
    from pipelines.mapping.jinja import compile_field

    read = {name: compile_field(found[name], where="--recording") for name in ("model", "query")}
    seen: dict[str, set[str]] = {name: set() for name in read}
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
        f"{'model' if name == 'model' else 'question'} in {found[name]!r} ({_few(places)}): give "
        "them one, or take them out; a build stops at them"
        for name, places in without.items()
        if places and seen[name]
    ]
    return seen["model"], seen["query"], lacks


def _join(asked: set[str], query: str, guess: Guess, rows: Sequence[Row]) -> list[str]:
    """Settle which column of the questions holds what the recording's `query` names."""
    given = guess.reasons.get("id") == "as given"
    if given or ("id" in guess.fields and _share(values(guess.fields["id"], rows), asked)):
        return []
    columns = dict.fromkeys(str(name) for row in rows for name in row)
    best = max(columns, key=lambda name: _share([row.get(name) for row in rows], asked))
    if not _share([row.get(best) for row in rows], asked):
        return [
            f"no column of the questions holds the values of {query!r} of the recording "
            f"({_few(sorted(asked))}): map fields.id of the source and fields.query to the same id"
        ]
    guess.say("id", reach(best), f"its values are those of {query!r} of the recording")
    guess.unused = [name for name in guess.unused if name != best]
    return []


def _share(seen: Sequence[Any], asked: set[str]) -> float:
    texts = [str(one) for one in seen]
    if len(set(texts)) < len(texts):
        return 0.0
    return sum(text in asked for text in texts) / max(1, len(texts))


def from_scores(
    columns: Mapping[str, str], source: Mapping[str, Any], guess: Guess, rows: Sequence[Row]
) -> Answers:
    """Pool and `collect` for a file with one score per model in each question's row."""
    lacks = []
    query = guess.fields.get("id")
    if query is None:
        asked = guess.fields.get("question")
        seen = [str(one) for one in values(asked, rows)] if asked is not None else []
        if asked is None or len(set(seen)) < len(rows):
            lacks.append("no column names the question of a row: map fields.id and fields.query")
        query = asked or "id"
        guess.say("id", query, "the questions themselves, as no column numbers them")
    guess.unused = [name for name in guess.unused if name not in columns.values()]
    recorded = [
        {
            "path": source["path"],
            "fields": {
                "query": query,
                "model": f"{{{{ {model!r} }}}}",
                "score": reach(column),
                # The scores stand beside the question that was asked.
                **({"prompt": guess.fields["question"]} if "question" in guess.fields else {}),
            },
        }
        for model, column in columns.items()
    ]
    return Answers(
        pool={"models": [{"model_id": name} for name in columns]},
        collect={"provider": "recorded", "recorded": recorded},
        words=f"{len(columns)} models with a column of scores each; an empty cell is a missing "
        "answer",
        waivers=_waivers({}),
        lacks=lacks,
        graded=True,
    )


def _waivers(found: Mapping[str, str]) -> list[dict[str, str]]:
    """What a recording without these columns cannot state; said aloud, as a card prints it."""
    tokens = {"prompt_tokens", "completion_tokens"} <= found.keys()
    if tokens and "cost_usd" in found:
        return []
    if tokens:
        reason = "The pool states no prices; fill in price_in, price_out and price_date."
        return [{"gate": "metering:price_unknown", "reason": reason}]
    waivers = [{"gate": "metering:usage_missing", "reason": "Recorded without usage."}]
    if "cost_usd" not in found:
        waivers.append({"gate": "metering:price_unknown", "reason": "Recorded without costs."})
    return waivers


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
