"""Columns that are no plain text: nested questions, passages, wrong options, class numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pipelines.ingest.guess_values import Guess, Row, reach

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
    base = re.findall(r"_row\[('(?:[^'\\]|\\.)*'|\"[^\"]*\")\]", asked)
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
    if not _CLASS.match(column) or not all(re.fullmatch(r"-?\d", n) for n in numbers):
        return
    del found.fields["references"], found.reasons["references"]
    classes = ", ".join(sorted(set(numbers)))
    found.doubts.append(
        f"{column!r}, whose numbers ({classes}) stand for classes: write their names into the "
        f"recipe, as in fields.references: \"{{{{ ['no', 'yes'][{column} | int] }}}}\""
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
