"""One row of a recording, read by its mapping; and whether its prompt asks what the recipe asks."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from routeyard.pipelines.errors import RecordedError
from routeyard.pipelines.mapping.fields import Sparse, compile_field, is_column
from routeyard.pipelines.mapping.texts import text_of
from routeyard.pipelines.scorers.scorer import GIVEN
from routeyard.schemas.leaks import same_words
from routeyard.schemas.recipe import Recorded
from routeyard.schemas.statuses import STATUSES, attempt_status, response_status

#: More tokens than any call takes or gives.
MOST_TOKENS = 100_000_000
#: Words that are scores.
_AS_SCORE = {"true": 1.0, "false": 0.0}
#: What every row has to say.
NEEDED = ("query", "model")
#: What is read as text.
_TEXTS = (*NEEDED, "text")


@dataclass(frozen=True, slots=True)
class RecipeQuestion:
    """What the recipe asks under one `source_id`."""

    query_id: str
    question: str
    prompt: str
    choices: Sequence[str]
    references: Sequence[str]
    scorer: str = ""


class RecordedRowReader:
    """Reads the rows of one file; `sparse`, of all files of the entry, counts keys left out."""

    def __init__(self, entry: Recorded, path: Path, sparse: Sparse):
        self._fields, self._read, self._sparse = entry.fields, {}, sparse
        self._columns: dict[str, str] = {}
        for name, text in entry.fields.model_dump(exclude_none=True).items():
            read = compile_field(text, where=f"{path.name}, fields.{name}")
            self._read[name] = sparse.reader(name, read, needed=name in NEEDED)
            if is_column(text):
                self._columns[name] = text

    def read(self, row: Mapping[str, Any], place: str) -> dict[str, Any]:
        """Field → value of every mapped field.

        Raises:
            RecordedError: the row names no question or no model, or its answer is no text.
            RecipeError: a mapping fails, or the row lacks a needed key.
        """
        said = self._said(row)
        for name in NEEDED:
            if said[name] is None or said[name] == "":
                raise RecordedError(
                    f"a row names no {'question' if name == 'query' else 'model'}",
                    where=f"{place}, fields.{name}",
                    next_step="give it one, or take the row out of the file",
                )
        for name in _TEXTS:
            if (value := said.get(name)) is not None and type(value) is not str:
                mapped = getattr(self._fields, name)
                said[name] = text_of(value, mapped, name, place, error=RecordedError)
        return said

    def _said(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Field → value; at once where the mapping names columns and the row has all of them."""
        if len(self._columns) == len(self._read):
            try:
                said = {
                    name: None
                    if isinstance(value := row[column], float) and value != value
                    else value
                    for name, column in self._columns.items()
                }
            except KeyError:  # a key within a key, or one that the row leaves out
                pass
            else:
                self._sparse.whole(self._columns)
                return said
        return {name: of(row) for name, of in self._read.items()}


def answer_of(value: str | None, *, csv: bool) -> str | None:
    """An answer, or None where the file has none: null or an empty cell of a CSV.

    Elsewhere an empty text is what the model answered; a CSV cannot tell it from no answer.
    """
    return None if value == "" and csv else value


def recorded_status(
    said: Mapping[str, Any], score: float | None, scorer: str, place: str
) -> str | None:
    """How a recorded attempt ended; None where the row holds neither text, score nor status.

    The row's own word counts first, then its finish reason and its error, then what there is: a
    text of blanks is `empty`, and one without a score for a question that only its source grades
    is `ungraded`.

    Raises:
        RecordedError: a word means no status that is known.
    """
    word, text = said.get("status"), said.get("text")
    finish = said.get("ended", said.get("finish_reason"))
    try:
        stated = attempt_status(
            word, text=text, score=score, finish=finish, error=said.get("error")
        )
    except LookupError as error:
        bad = str(error.args[0])[:60]
        raise RecordedError(
            f"the status {bad!r} is not one of {', '.join(STATUSES)}, nor a word for one",
            where=f"{place}, fields.{'status' if error.args[0] is word else 'finish_reason'}",
            next_step="say what it means, beside `fields` of this file in collect.recorded: "
            f"statuses: {{{_yaml(bad)}: error}} (or ok, refused, truncated, …)",
        ) from None
    if stated is None and text is None and score is None:
        return None
    if stated in (None, "ok", "ungraded"):
        if text is None and score is None:
            return "ungraded"
        if response_status("ok", text) == "empty":
            return "empty"
        return "ungraded" if score is None and (scorer == GIVEN or stated == "ungraded") else "ok"
    return stated


def _yaml(word: str) -> str:
    """A word as a key of YAML."""
    return word if re.fullmatch(r"[A-Za-z][\w.-]*", word) else json.dumps(word, ensure_ascii=False)


def score_of(value: Any, place: str) -> float | None:
    """A score in [0, 1], or None where the row says nothing, as NaN does.

    Raises:
        RecordedError: it is something else.
    """
    if value is None:
        return None
    try:
        score = _AS_SCORE.get(str(value).strip().lower())
        score = number_of(value, place) if score is None else score
    except RecordedError:
        score = -1.0
    if score is not None and not 0 <= score <= 1:
        raise RecordedError(
            f"the score {value!r} is not a number in [0, 1]",
            where=place,
            next_step="scale it in the mapping, e.g. score: '{{ rating / 10 }}'",
        )
    return score


def number_of(value: Any, place: str) -> float | None:
    """A number, or None where the file says nothing: null, NaN, or the empty text of a CSV.

    Raises:
        RecordedError: it is no number, or without end.
    """
    if value is None or value == "":
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise _no_number(value, place) from error
    if math.isinf(found):
        raise _no_number(value, place)
    return None if math.isnan(found) else found


def count_of(value: Any, place: str) -> int | None:
    """The same as a whole number of tokens.

    Raises:
        RecordedError: it is true or false, below zero, no whole number, or more than a call takes.
    """
    if value is None:
        return None
    number = amount_of(value, place)
    if number is not None and (number != int(number) or number > MOST_TOKENS):
        raise RecordedError(
            f"expected a whole number of tokens; found {str(value)[:60]!r}",
            where=place,
            next_step="name the column of the tokens, or scale it in 'fields'",
        )
    return None if number is None else int(number)


def amount_of(value: Any, place: str) -> float | None:
    """The same as an amount, such as seconds or dollars.

    Raises:
        RecordedError: it is true or false, or below zero.
    """
    if value is None:
        return None
    number = number_of(value, place)
    if isinstance(value, bool) or (number is not None and number < 0):
        raise RecordedError(
            f"expected an amount of 0 or more; found {value!r}",
            where=place,
            next_step="where it means 'unknown', map it to null in 'fields'",
        )
    return number


Amount = TypeVar("Amount", int, float)


def measured(value: Amount | None, answered: bool) -> Amount | None:
    """The value, or None where it is 0 beside an answer: nobody measured it, and it is not free."""
    return None if answered and value == 0 else value


def _no_number(value: Any, place: str) -> RecordedError:
    return RecordedError(
        f"{value!r} is not a number", where=place, next_step="correct 'fields' or the file"
    )


def asks_the_same(sent: Any, asked: RecipeQuestion) -> bool:
    """Whether a recorded prompt asks the recipe's question, whatever text is around it.

    Case and space do not count. Where some of the options are beside the question, all have to.

    Args:
        sent: A text, or a list of chat messages.
    """
    text, question = same_words(_text(sent)), same_words(asked.question)
    if text in (question, same_words(asked.prompt)):
        return True
    if question not in text:
        return False
    around = text.replace(question, " ")
    there = [_stands_in(same_words(choice), around) for choice in asked.choices]
    return all(there) or not any(there)


def _stands_in(choice: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(choice)}(?!\w)", text) is not None


def _text(sent: Any) -> str:
    """The words of a prompt: a text, a message with `content`, or a list of either."""
    if isinstance(sent, Mapping):
        return _text(sent.get("content", sent.get("text", "")))
    if isinstance(sent, str) or not isinstance(sent, Iterable):
        return str(sent)
    return "\n".join(_text(part) for part in sent)
