"""Questions within other values, with a passage before them, and options that a row mixes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from routeyard.pipelines.ingest.guessing.guess import Guess, Table, here
from routeyard.pipelines.ingest.guessing.roles import PASSAGE, QUESTION_ROLES, plain

#: Columns with one wrong option each.
_WRONG = re.compile(
    r"^(?:distractor|incorrect|wrong|false)[ _-]?(?:answer|option|choice)?s?[ _-]?\d+$"
)
_CHATS = ("conversations", "messages", "conversation", "dialog", "dialogue")
_INSIDE = ("question", "prompt", "query", "problem", "text", "stem", "input")


def nested_question(guess: Guess, table: Table) -> bool:
    """Map a chat to the question; true where each row holds a list of questions instead."""
    if "question" in guess.fields:
        return False
    names = set(QUESTION_ROLES["question"].names)
    known = [column for column in table.columns if plain(column) in names]
    for column in known:
        seen = table.seen(column)
        if all(isinstance(v, list) and all(isinstance(t, str | dict) for t in v) for v in seen):
            guess.doubts.append(
                f"{column!r}, which holds several questions a row: `each` of the source in the "
                "recipe takes one after the other, as `routeyard sources show quac` does; then "
                "fields.question"
            )
            return True
    chats = (c for c in _CHATS if c in table.rows[0] and _first_turn(table.seen(c)) is not None)
    chat = None if known else next(chats, None)
    if chat is not None:
        guess.take("question", chat, "a chat")
    return False


def question_inside(guess: Guess, table: Table) -> None:
    """Map the question to a text within an object that is long enough in every row."""
    for column in guess.free:
        seen = table.seen(column)
        if not all(isinstance(value, dict) for value in seen):
            continue
        for key in _INSIDE:
            texts = [value[key] for value in seen if isinstance(value.get(key), str)]
            if len(texts) == len(seen) and sum(map(len, texts)) >= 8 * len(texts):
                value = f"{{{{ {here(column)}[{key!r}] }}}}"
                guess.put("question", value, f"the {key!r} of {column!r}")
                guess.origins["question"] = column
                return


def read_question(guess: Guess, table: Table) -> None:
    """The text in a nested question, a chat's first turn, and the passage it is about."""
    column = guess.plain("question")
    if column is None:
        return
    expression, seen = here(column), table.seen(column)
    if all(isinstance(v, dict) and isinstance(v.get("text"), str) for v in seen):
        expression += ".text"
        guess.put("question", f"{{{{ {expression} }}}}", f"{column!r} holds its text")
    elif (turn := _first_turn(seen)) is not None:
        place, part = turn
        value = f"{{{{ {expression}[{place}].{part} }}}}"
        guess.put("question", value, f"first turn of {column!r}")
        return
    about = [name for name in _passages(table) if name != column]
    if about and not guess.given("question"):
        parts = [f"{{{{ {one} }}}}" for one in (*map(here, about), expression)]
        why = f"{column!r}, after {', '.join(map(repr, about))}, which it is about"
        guess.put("question", "\n\n".join(parts), why)


def _passages(table: Table) -> list[str]:
    """Columns of text that a question needs, in every row."""
    return [
        column
        for column in table.columns
        if re.sub(r"[\W_]+", "", column).lower() in PASSAGE.names
        and all(isinstance(value, str) for value in table.seen(column))
        and any(table.seen(column))
    ]


def _first_turn(seen: Sequence[Any]) -> tuple[int, str] | None:
    """(place, part) of what a person says first in a chat: a list of {from, value} or the like."""
    if not seen or not all(
        isinstance(v, list) and v and all(isinstance(turn, dict) for turn in v) for v in seen
    ):
        return None

    def shared(*keys: str) -> str | None:
        return next((key for key in keys if all(key in v[0] for v in seen)), None)

    part, who = shared("value", "content", "text"), shared("from", "role", "speaker")
    if part is None or who is None:
        return None if part is None else (0, part)
    place = int(all(v[0][who] == "system" and len(v) > 1 for v in seen))
    person = all(str(v[place][who]).lower() in ("human", "user") for v in seen)
    return (place, part) if person else None


def wrong_options(columns: Sequence[str]) -> list[str]:
    """Columns of one wrong option each (`distractor1`, `Incorrect Answer 2`), in order."""
    return sorted(column for column in columns if _WRONG.match(column.strip().lower()))


def mix_wrong(guess: Guess, wrong: Sequence[str]) -> None:
    """The right answer among the wrong ones, in an order that the question's words decide."""
    column = guess.plain("references")
    if not wrong or column is None or "question" not in guess.fields or "choices" in guess.fields:
        return
    right = here(column)
    listed = f"[{', '.join([right, *map(here, wrong)])}]"
    _mix(guess, listed, right, f"{column!r} mixed with {', '.join(wrong)}", f"where {column!r} is")


def mix_marked(guess: Guess, table: Table) -> None:
    """Options with a mark each, 1 for the right one; mixed, as it may always be the first."""
    if {"choices", "references"} & set(guess.fields) or "question" not in guess.fields:
        return
    column = next((c for c in guess.free if all(map(_marked, table.seen(c)))), None)
    if column is not None:
        options = f"{here(column)}.choices"
        right = f"{options}[{here(column)}.labels.index(1)]"
        marked = f"the one that {column!r} marks with 1"
        _mix(guess, options, right, f"{column!r}, mixed", marked)


def _mix(guess: Guess, options: str, right: str, why: str, marked: str) -> None:
    # The row's own question, not what is made of it: the order must not depend on a passage.
    mixed = f"({options} | shuffled({here(guess.origins['question'])}))"
    guess.put("choices", f"{{{{ {mixed} }}}}", why)
    guess.put("references", f"{{{{ {mixed}.index({right}) | letter }}}}", marked)


def _marked(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    options, marks = value.get("choices"), value.get("labels")
    return (
        isinstance(options, list)
        and isinstance(marks, list)
        and len(options) == len(marks) > 1
        and sorted(marks) == [0] * (len(marks) - 1) + [1]
    )
