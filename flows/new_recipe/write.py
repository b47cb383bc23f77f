"""A commented recipe for someone's own questions, that builds as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from routeyard.flows.new_recipe.first_rows import first_rows, one_kind
from routeyard.flows.new_recipe.from_results import (
    NoResults,
    ResultsRecipe,
    from_results,
    recorded_results,
)
from routeyard.flows.new_recipe.pool import from_provider
from routeyard.flows.new_recipe.recorded import from_recording, names_models, refuse_answers
from routeyard.flows.new_recipe.text import recipe_text
from routeyard.pipelines.errors import BadInput
from routeyard.pipelines.ingest.guessing.columns import guess_columns
from routeyard.pipelines.ingest.guessing.guess import Guess, Table
from routeyard.pipelines.ingest.guessing.scorers import ScorerSuggestion, suggest
from routeyard.pipelines.ingest.guessing.values import present
from routeyard.pipelines.ingest.results import Results
from routeyard.pipelines.scorers import SCORERS


@dataclass(frozen=True)
class NewRecipe:
    """What was guessed and written.

    Attributes:
        rows: Rows that the guess read.
        pool: Where the models come from.
        lacks: What a person has to add before the recipe builds.
        unread: Files of the folder and columns of answers that are not read.
        left_out: Which rows the recipe leaves out, a sentence each.
        known: What the recipe states of the answers, such as values that were left out.
        waivers: Findings that the recipe waives: gate, and how many there are of what.
    """

    recipe: Path
    rows: int
    guess: Guess
    scorer: ScorerSuggestion
    pool: str
    lacks: list[str]
    unread: list[str]
    left_out: list[str]
    known: list[str]
    waivers: list[dict[str, str]]


def start_recipe(
    recipe: Path,
    origin: str,
    *,
    given: Mapping[str, str],
    scorer: str | None = None,
    provider: str | None = None,
    key_env: str | None = None,
    models: Sequence[str] = (),
    config: str | None = None,
    split: str | None = None,
    recording: str | None = None,
    results: Results | None = None,
    near_duplicates: bool = True,
    accepted: Mapping[str, str] = MappingProxyType({}),
) -> NewRecipe:
    """Read the first questions, guess what their columns hold, and write the recipe.

    Args:
        origin: A file, a folder of files of one kind, or the id of a hub dataset.
        given: field → column, where a person knows better.
        provider: Address of an OpenAI-compatible provider; its model list fills the pool.
        recording: A file of answers that somebody has already; its models fill the pool.
        results: What `recorded_results` read there, where it was read already.
        near_duplicates: The recipe looks for them; it embeds every question.
        accepted: As `from_results` takes it.

    Raises:
        BadInput: the recipe exists, nothing can be read, a column does not exist, or the
            rows are answers and no questions.
    """
    if recipe.exists():
        raise BadInput(
            f"{recipe} exists already and is not overwritten",
            where=str(recipe),
            next_step="name another file, or remove it",
        )
    no_results = NoResults()
    if not (given or provider or recording or scorer or config):
        found = results or recorded_results(origin)
        if isinstance(found, Results):
            made = from_results(found, origin, recipe, accepted)
            return _of_results(made, recipe, near_duplicates)
        no_results = found
    source, rows, unread = first_rows(origin, recipe, config, split)
    table = Table(rows)
    guess = guess_columns(rows, _checked(given, table.columns, origin))
    one_kind(rows, guess.fields.get("question"), origin)
    refuse_answers(table, guess, origin, recipe, unread)
    if no_results.error is not None and names_models(table, guess):
        raise no_results.error
    if recording is not None:
        answers = from_recording(recording, recipe, guess, table)
    else:
        answers = from_provider(provider, key_env, models)
    references = [_texts(value) for value in table.values(guess.fields.get("references", ""))]
    if answers.graded and scorer is None:
        suggested = ScorerSuggestion("given", "the answers are grades that come with the data")
    else:
        suggested = _scorer(guess, table, references, scorer, answers.outputs)
    lacks = [*answers.lacks, *_lacks(guess, suggested), *_to_confirm(no_results, guess)]
    source["scorer"] = suggested.scorer
    source["fields"] = guess.fields
    left_out = _left_out(source, guess, table, references)
    text = recipe_text(
        _name(recipe), source, answers, guess, suggested, lacks, left_out, near_duplicates
    )
    _write(recipe, text)
    return NewRecipe(
        recipe, len(rows), guess, suggested, answers.words, lacks, [*unread, *answers.unread],
        left_out, answers.known_issues, answers.waivers,
    )  # fmt: skip


def _left_out(
    source: dict[str, Any], guess: Guess, table: Table, references: Sequence[Sequence[str]]
) -> list[str]:
    """Sentences about the rows that the source leaves out; the keys that do so are put into it."""
    column = guess.plain("question")
    seen = table.values(column) if column else []
    empty = {"question": len(seen) - len(present(seen))}
    if source["scorer"] not in ("none", "given") and "references" in guess.fields:
        empty["reference"] = sum(not any(text.strip() for text in texts) for texts in references)
    source |= {f"missing_{what}": "remove" for what, rows in empty.items() if rows}
    return [
        f"{rows} of {len(table.rows)} rows looked at have no {what} (listed in removals)"
        for what, rows in empty.items()
        if rows
    ]


def _to_confirm(no_results: NoResults, guess: Guess) -> list[str]:
    """What a person is asked of columns that may be scores of models, and are left out."""
    left = no_results.columns - guess.used
    # Beside a column that is part of the question, one alone is no table of scores.
    if len(left) < (1 if left == no_results.columns else 2):
        return []
    return [
        f"your word on what `routeyard audit` would ask: {no_results.doubt}; here they are left "
        "out, and the rows are questions. If they are models' scores, give the columns the "
        "models' names, or list them in a column `model`"
    ]


def _of_results(made: ResultsRecipe, recipe: Path, near_duplicates: bool) -> NewRecipe:
    """The recipe of somebody's results, written."""
    answers, scorer = made.answers, made.scorer
    text = recipe_text(
        _name(recipe),
        made.source,
        answers,
        made.guess,
        scorer,
        answers.lacks,
        [],
        near_duplicates,
    )
    _write(recipe, text)
    return NewRecipe(
        recipe, made.rows, made.guess, scorer, answers.words, answers.lacks,
        list(answers.unread), [], answers.known_issues, answers.waivers,
    )  # fmt: skip


def _name(recipe: Path) -> str:
    """Name of the benchmark: that of the recipe's file."""
    return re.sub(r"[^a-z0-9_.-]+", "-", recipe.stem.lower()).strip("-_.") or "benchmark"


def _write(recipe: Path, text: str) -> None:
    recipe.parent.mkdir(parents=True, exist_ok=True)
    recipe.write_text(text, encoding="utf-8", newline="\n")


def _checked(given: Mapping[str, str], columns: Sequence[str], origin: str) -> dict[str, str]:
    """Columns that a person named; a name within a nested column becomes an expression."""
    found = {}
    for name, column in given.items():
        inside = column not in columns and column.partition(".")[0] in columns
        if inside and re.fullmatch(r"\w+(\.\w+)+", column):
            column = f"{{{{ {column} }}}}"
        if column not in columns and "{{" not in column:
            raise BadInput(
                f"there is no column {column!r}",
                where=f"{origin}, --{name}",
                next_step="columns: " + ", ".join(sorted(columns)),
            )
        found[name] = column
    return found


def _scorer(
    guess: Guess,
    table: Table,
    references: list[list[str]],
    named: str | None,
    outputs: Sequence[str],
) -> ScorerSuggestion:
    if named is not None:
        if named != "none":
            SCORERS.get(named, where="--scorer")
        return ScorerSuggestion(named, "as given")
    if "references" not in guess.fields:
        return ScorerSuggestion("none", "no column holds the answers")
    rows = len(table.rows)
    asked, mapped = guess.fields.get("question"), guess.fields.get("choices")
    questions = [str(v or "") for v in table.values(asked)] if asked else [""] * rows
    choices: list[list[str]] = [[] for _ in table.rows]
    if mapped:
        choices = [_options(value) for value in table.values(mapped)]
    holes = sum(any(not text.strip() for text in listed) for listed in choices)
    if holes:
        guess.doubts.append(
            f"the options: {holes} of {rows} rows have an option without a text before others "
            "(fields.choices)"
        )
    return suggest(questions, references, choices, outputs)


def _texts(value: Any) -> list[str]:
    listed = value if isinstance(value, list | tuple) else [value]
    return [str(one) for one in listed if one is not None]


def _options(value: Any) -> list[str]:
    """Options at their places; empty ones at the end are padding."""
    listed = value if isinstance(value, list | tuple) else [value]
    found = ["" if one is None else str(one) for one in listed]
    while found and not found[-1].strip():
        found.pop()
    return found


def _lacks(guess: Guess, scorer: ScorerSuggestion) -> list[str]:
    columns = ", ".join(sorted(guess.columns))
    found = [f"a look at {doubt}" for doubt in guess.doubts]
    if "question" in guess.lacks:
        found.append(f"no column looks like questions: name it with --question ({columns})")
    if scorer.scorer == "none":
        found.append(
            f"no column holds the answers: name it with --references ({columns}), or a judge under "
            "label.judges and label.default.then"
        )
    if scorer.tried and scorer.right < scorer.tried * 0.9:
        found.append(
            f"the answers are not the letters of the options ({scorer.right} of {scorer.tried} "
            "fit): map fields.references to the letter"
            if scorer.scorer == "mcq"
            else f"{scorer.scorer!r} reads only {scorer.right} of {scorer.tried} answers that "
            "repeat the reference: map fields.references to the bare answer, or name another "
            "scorer with --scorer"
        )
    return found
