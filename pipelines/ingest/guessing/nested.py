"""Columns that are no plain text: nested questions, passages, wrong options, class numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

from pipelines.ingest.guessing.values import Guess, Row, reach

#: Columns that a question needs to be answered, in any case and however words are divided.
CONTEXT = (
    "context", "passage", "paragraph", "article", "story", "background", "body", "passagetext",
    "contexttext", "premise", "kontext", "texte", "contexto", "passageen",
)  # fmt: skip
#: Columns with one wrong option each.
_WRONG = re.compile(
    r"^(?:distractor|incorrect|wrong|false)[ _-]?(?:answer|option|choice)?s?[ _-]?\d+$"
)
#: Names of columns whose whole numbers stand for classes.
_CLASS = re.compile(r"^(?:label|labels|class|gold|target|cls|y)(?:[ _-]?(?:id|idx|index))?$", re.I)
#: A column in a mapping's expression, as it is written there.
_NAMED = re.compile(r"_row\[('(?:[^'\\]|\\.)*'|\"[^\"]*\")\]")
_YES_NO = re.compile(
    r"(?:is|are|was|were|am|do|does|did|can|could|will|would|has|have|had|should|shall|may|might|"
    r"must)\b",
    re.IGNORECASE,
)
_TURNS = ("value", "content", "text")
_PERSON = ("human", "user")


def settle_question(found: Guess, rows: Sequence[Row]) -> None:
    """The text in a nested question, a chat's first turn, and the passage it is about."""
    column = found.fields.get("question")
    if not isinstance(column, str) or column.startswith("{{"):
        return
    here, seen = f"_row[{column!r}]", [row.get(column) for row in rows]
    expression = None
    if all(isinstance(v, dict) and isinstance(v.get("text"), str) for v in seen):
        expression = f"{here}.text"
        found.say("question", f"{{{{ {expression} }}}}", f"{column!r} holds its text")
    elif (turn := _first_turn(seen)) is not None:
        place, part = turn
        found.say("question", f"{{{{ {here}[{place}].{part} }}}}", f"first turn of {column!r}")
        return
    if found.reasons["question"] == "as given":
        return
    about = [name for name in _context(rows) if name != column]
    if about:
        parts = [f"{{{{ _row[{name!r}] }}}}" for name in about]
        text = "\n\n".join([*parts, f"{{{{ {expression or here} }}}}"])
        why = f"{column!r}, after {', '.join(map(repr, about))}, which it is about"
        found.say("question", text, why)


def _context(rows: Sequence[Row]) -> list[str]:
    """Columns of text that stand before a question, in every row."""
    names = [name for name in rows[0] if re.sub(r"[\W_]+", "", str(name)).lower() in CONTEXT]
    return [
        name
        for name in names
        if all(isinstance(row.get(name), str) for row in rows) and any(row[name] for row in rows)
    ]


def text_inside(columns: Sequence[str], rows: Sequence[Row]) -> tuple[str, str] | None:
    """(column, key) of an object whose text is long enough for a question, in every row."""
    for column in columns:
        seen = [row.get(column) for row in rows]
        objects = [v for v in seen if isinstance(v, dict)]
        if not objects or len(objects) < len(seen):
            continue
        for key in ("question", "prompt", "query", "problem", "text", "stem", "input"):
            texts = [v[key] for v in objects if isinstance(v.get(key), str)]
            if len(texts) == len(seen) and sum(map(len, texts)) >= 8 * len(texts):
                return column, key
    return None


def _first_turn(given: Sequence[Any]) -> tuple[int, str] | None:
    """(place, part) of what a person says first in a chat: a list of {from, value} or the like."""
    seen = [v for v in given if isinstance(v, list) and v and all(isinstance(t, dict) for t in v)]
    if not seen or len(seen) < len(given):
        return None
    part = next((p for p in _TURNS if all(p in v[0] for v in seen)), None)
    who = next((k for k in ("from", "role", "speaker") if all(k in v[0] for v in seen)), None)
    if part is None:
        return None
    place = 0
    if who is not None and all(v[0][who] == "system" and len(v) > 1 for v in seen):
        place = 1
    if who is not None and not all(str(v[place][who]).lower() in _PERSON for v in seen):
        return None
    return place, part


def turns_column(rows: Sequence[Row]) -> str | None:
    """A column that holds chats."""
    for name in ("conversations", "messages", "conversation", "dialog", "dialogue"):
        if name in rows[0] and _first_turn([row.get(name) for row in rows]) is not None:
            return name
    return None


def several_questions(column: str, rows: Sequence[Row]) -> bool:
    """Whether each row holds a list of questions, one after the other."""
    seen = [row.get(column) for row in rows]
    listed = [v for v in seen if isinstance(v, list)]
    return len(listed) == len(seen) and all(isinstance(t, str | dict) for v in listed for t in v)


def wrong_options(columns: Sequence[str]) -> list[str]:
    """Columns of one wrong option each (`distractor1`, `Incorrect Answer 2`), in order."""
    return sorted(c for c in columns if _WRONG.match(c.strip().lower()))


def settle_wrong(found: Guess, wrong: Sequence[str]) -> None:
    """The right answer among the wrong ones, in an order that the question's words decide."""
    column, asked = found.fields.get("references"), found.fields.get("question")
    if not wrong or not isinstance(column, str) or column.startswith("{{"):
        return
    if not isinstance(asked, str) or "choices" in found.fields:
        return
    right = f"_row[{column!r}]"
    # The row's own question, not what is made of it: mixing must not depend on a passage.
    base = _NAMED.findall(asked)
    by = f"_row[{base[-1]}]" if base else f"_row[{asked!r}]"
    listed = f"([{', '.join([right, *(f'_row[{c!r}]' for c in wrong)])}] | shuffled({by}))"
    found.say("choices", f"{{{{ {listed} }}}}", f"{column!r} mixed with {', '.join(wrong)}")
    found.say("references", f"{{{{ {listed}.index({right}) | letter }}}}", f"where {column!r} is")


def settle_classes(found: Guess, rows: Sequence[Row]) -> None:
    """Numbers that stand for classes are no answers: what they mean has to be said."""
    column = found.fields.get("references")
    if not isinstance(column, str) or found.reasons["references"] == "as given":
        return
    if "choices" in found.fields or column not in rows[0]:
        return
    seen = [row.get(column) for row in rows if row.get(column) not in (None, "")]
    if seen and all(isinstance(v, bool) for v in seen):
        value = f"{{{{ 'yes' if _row[{column!r}] else 'no' }}}}"
        found.say("references", value, f"{column!r} is true or false")
        return
    numbers = [str(v).strip() for v in seen]
    if seen and {*numbers} <= {"0", "1"} and _asks_yes_or_no(found, rows):
        value = f"{{{{ ['no', 'yes'][_row[{column!r}] | int] }}}}"
        found.say("references", value, f"{column!r}, 0 as no and 1 as yes: the questions ask that")
        return
    if not _CLASS.match(column) or not all(re.fullmatch(r"-?\d", n) for n in numbers):
        return
    del found.fields["references"], found.reasons["references"]
    classes = ", ".join(sorted(set(numbers)))
    found.doubts.append(
        f"{column!r}, whose numbers ({classes}) stand for classes: write their names into the "
        f"recipe, as in fields.references: \"{{{{ ['no', 'yes'][{column} | int] }}}}\""
    )


def _asks_yes_or_no(found: Guess, rows: Sequence[Row]) -> bool:
    """Whether every question starts as one that yes or no answers."""
    asked = str(found.fields.get("question", ""))
    named = _NAMED.findall(asked)
    column = ast.literal_eval(named[-1]) if named else asked
    return all(_YES_NO.match(str(row.get(column) or "").strip()) for row in rows)


def settle_marked(found: Guess, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Options with a mark each, 1 for the right one; mixed, as it may always stand first."""
    if {"choices", "references"} & set(found.fields) or "question" not in found.fields:
        return
    for column in columns:
        seen = [row.get(column) for row in rows]
        if not all(_marked(v) for v in seen):
            continue
        named = _NAMED.findall(str(found.fields["question"]))
        by = f"_row[{named[-1]}]" if named else f"_row[{found.fields['question']!r}]"
        here = f"_row[{column!r}]"
        listed = f"({here}.choices | shuffled({by}))"
        right = f"{here}.choices[{here}.labels.index(1)]"
        found.say("choices", f"{{{{ {listed} }}}}", f"{column!r}, mixed")
        value = f"{{{{ {listed}.index({right}) | letter }}}}"
        found.say("references", value, f"the one that {column!r} marks with 1")
        return


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


def settle_absent(found: Guess, rows: Sequence[Row]) -> None:
    """A column that some rows lack is empty there, and no fault of the recipe."""
    for name in ("references", "id", "task"):
        column = found.fields.get(name)
        if isinstance(column, str) and column == reach(column):
            lacking = sum(column not in row for row in rows)
            if lacking:
                why = f"{found.reasons[name]}; {lacking} of {len(rows)} rows lack it"
                found.say(name, f"{{{{ _row.get({column!r}) }}}}", why)
