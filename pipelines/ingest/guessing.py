"""Guesses for a stranger's table: which column holds what, and which scorer reads its answers."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import pairwise
from string import ascii_uppercase
from typing import Any

from routeyard.pipelines.common.mapping import compile_field, text_key
from routeyard.schemas.text import own_table

# Tests of a column's values; `names.yaml` names the one that each role demands.

#: Tests in Python, as code questions have them for references.
CODE = re.compile(r"\bassert\b|\bdef check\(|\bunittest\b")


def present(seen: Sequence[Any]) -> list[Any]:
    """Values that are neither null nor empty."""
    return [
        value
        for value in seen
        if value not in (None, "", []) and not (isinstance(value, str) and value.isspace())
    ]


def mostly_filled(seen: Sequence[Any]) -> bool:
    """Whether at most one row in ten lacks a value."""
    return 10 * (len(seen) - len(present(seen))) <= len(seen)


def mean_length(texts: Sequence[Any]) -> float:
    """Mean length of the values as texts, in characters."""
    return sum(len(str(text)) for text in texts) / max(1, len(texts))


def is_score(value: Any) -> bool:
    """Whether a value is a number in [0, 1], NaN, or true or false, also as text."""
    if isinstance(value, bool) or str(value).strip().lower() in ("true", "false"):
        return True
    try:
        number = float(value)
    except (TypeError, ValueError):
        return False
    return math.isnan(number) or 0 <= number <= 1


def scores(seen: Sequence[Any]) -> bool:
    """Whether a column holds scores, with gaps in at most half of its rows."""
    there = [value for value in seen if value not in (None, "")]
    return bool(there) and 2 * len(there) >= len(seen) and all(map(is_score, there))


def distinct(seen: Sequence[Any]) -> bool:
    """Whether every row has a value, and no two rows the same."""
    return all(value not in (None, "") for value in seen) and len({*map(str, seen)}) == len(seen)


def consecutive(seen: Sequence[Any]) -> bool:
    """Whether values only number the rows."""
    try:
        numbers = [int(str(value)) for value in seen]
    except ValueError:
        return False
    return all(b - a == 1 for a, b in pairwise(numbers))


def is_json_list(value: Any) -> bool:
    """Whether a value is a text that holds a JSON list."""
    try:
        return isinstance(value, str) and isinstance(json.loads(value), list)
    except ValueError:
        return False


def _long_text(there: Sequence[Any]) -> bool:
    if all(isinstance(value, dict) for value in there):
        there = [value.get("text") for value in there]
    return all(isinstance(value, str) for value in there) and mean_length(there) >= 8


def _repeated_text(there: Sequence[Any]) -> bool:
    texts = all(isinstance(value, str) for value in there)
    return texts and len(set(there)) <= max(1, len(there) // 2)


#: Name in `names.yaml` → test of the values that are present; there is at least one.
TESTS: dict[str, Callable[[Sequence[Any]], bool]] = {
    "anything": lambda there: True,
    "code": lambda there: sum(bool(CODE.search(str(v))) for v in there) > len(there) / 2,
    "few_words": lambda there: all(len(str(v).split()) <= 3 for v in there),
    "fractions": lambda there: all(map(is_score, there)),
    "long_text": _long_text,
    "no_numbers": lambda there: not any(isinstance(v, int | float) for v in there),
    "repeated_text": _repeated_text,
}


# A guess of what a table's columns hold, with a reason for each.

Row = Mapping[str, Any]
#: Reason of a field that a person named.
GIVEN = "as given"


class Table:
    """The first rows of a table, and its columns in the order in which they appear."""

    def __init__(self, rows: Sequence[Row]):
        self.rows = rows
        self.columns = list(dict.fromkeys(str(name) for row in rows for name in row))

    def seen(self, column: str) -> list[Any]:
        """The column's value in each row; None where a row lacks it."""
        return [row.get(column) for row in self.rows]

    def values(self, mapping: Any) -> list[Any]:
        """What a mapping, or a list of them, gives for each row; None where it fails."""
        from routeyard.schemas.errors import RecipeError

        def value(text: str, row: Row) -> Any:
            try:
                return compile_field(text, where="guess")(row)
            except RecipeError:
                return None

        if isinstance(mapping, list):
            return [[value(text, row) for text in mapping] for row in self.rows]
        return [value(mapping, row) for row in self.rows]


@dataclass
class Guess:
    """Field of a source → column or expression, and why.

    Attributes:
        columns: Columns of the table.
        fields: Field → column or Jinja expression.
        reasons: Field → why this column.
        doubts: What a person has to check, because the rows that were read cannot tell.
        origins: Field → the column that it was first taken from.
        labels: Expression of the labels stored with the options; empty without any.
        used: Columns that something was taken from.
    """

    columns: list[str]
    fields: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)
    labels: str = ""
    used: set[str] = field(default_factory=set)

    def put(self, name: str, value: Any, why: str) -> None:
        """Map a field to a column or an expression."""
        self.fields[name], self.reasons[name] = value, why

    def take(self, name: str, column: str, why: str) -> None:
        """Map a field to a column, which is then used."""
        self.put(name, reach(column), why)
        self.origins[name] = column
        self.used.add(column)

    def drop(self, name: str) -> None:
        """Take back what a field was mapped to."""
        del self.fields[name], self.reasons[name]

    def plain(self, name: str) -> str | None:
        """The column that a field is mapped to as it is; None for an expression or no mapping."""
        column = self.fields.get(name)
        return column if isinstance(column, str) and not column.startswith("{{") else None

    def is_named(self, name: str) -> bool:
        """Whether a person named the field's column."""
        return self.reasons.get(name) == GIVEN

    @property
    def free(self) -> list[str]:
        """Columns that nothing was taken from so far."""
        return [column for column in self.columns if column not in self.used]

    @property
    def unused(self) -> list[str]:
        """Columns that no field names."""
        named = str(list(self.fields.values()))
        return [column for column in self.free if repr(column) not in named]

    @property
    def lacks(self) -> list[str]:
        """Fields that every source needs and no column was found for."""
        return [name for name in ("question", "references") if name not in self.fields]


def reach(column: str) -> str:
    """How a mapping names a column: as it is, and through the row where it would read as Jinja."""
    return column if "{{" not in column and "{%" not in column else f"{{{{ {here(column)} }}}}"


def here(column: str) -> str:
    """A column inside a mapping's expression."""
    return f"_row[{column!r}]"


# Roles that columns can have (`names.yaml`), and the search for a role's column by its name.


def fits(role: Mapping[str, Any], seen: Sequence[Any]) -> bool:
    """Whether a column's values can have a role of `names.yaml`."""
    there = present(seen)
    few = role.get("most_rows") and not mostly_filled(seen)
    return bool(there) and TESTS[role["values"]](there) and not few


def column_of(role: Mapping[str, Any], columns: Sequence[str], table: Table) -> str | None:
    """The column with the best name for a role whose values fit; None without any.

    A longer name that contains a role's of four letters or more fits after the whole names:
    `the_question_en`, `Correct Answer (text)`.
    """
    by_plain = {plain(column): column for column in reversed(columns)}
    named = [by_plain[name] for name in role["names"] if name in by_plain]
    named += [
        column
        for known in role["names"]
        for name, column in by_plain.items()
        if len(known) >= 4 and known in name and not name.endswith(role.get("not_ending", "\0"))
    ]
    fitting = [column for column in named if fits(role, table.seen(column))]
    if role.get("most_rows"):  # one without gaps rather than a better name
        fitting.sort(key=lambda column: len(present(table.seen(column))) < len(table.rows))
    return fitting[0] if fitting else None


def plain(name: str) -> str:
    """A column's name without case, spaces and signs."""
    return re.sub(r"[\s_\-.:/()\[\]]+", "", name).lower()


_TABLE = own_table(files(__package__).joinpath("names.yaml"))
#: Roles in a table of questions, in the order in which they take columns.
QUESTION_ROLES: dict[str, dict[str, Any]] = _TABLE["questions"]
#: Names of texts that a question needs to be answered; they are put before it.
PASSAGES: list[str] = _TABLE["passages"]


# Options that a table stores as objects: where their texts are, and what labels they have.

_LISTS = ("text", "texts", "choices")
_LABELS = ("label", "key", "letter", "id", "option", "index")


def is_object(value: Any) -> bool:
    """Whether options are an object, or a list of objects."""
    listed = isinstance(value, list) and bool(value)
    return isinstance(value, dict) or (listed and all(isinstance(item, dict) for item in value))


def stored(column: str, seen: Sequence[Any]) -> tuple[str, str, str] | None:
    """Expressions of the texts of a column's options and of their labels (empty without any), and
    why; None where its values hold no texts.

    Args:
        seen: The column's values, each an object or a list of objects.
    """
    at = here(column)
    if all(isinstance(value, dict) for value in seen):
        return _of_objects(column, seen)
    if not all(isinstance(value, list) for value in seen):
        return None
    entries = [entry for value in seen for entry in value]
    shared = [key for key in entries[0] if all(_is_text(item.get(key)) for item in entries)]
    if not shared:
        return None
    text = text_key({key: entries[0][key] for key in shared})
    label = next((key for key in _LABELS if key in shared and key != text), None)
    texts, labels = (f"{at} | map(attribute={k!r}) | list" if k else "" for k in (text, label))
    return texts, labels, f"{column!r}, the {text!r} of each"


def _of_objects(column: str, seen: Sequence[dict[str, Any]]) -> tuple[str, str, str] | None:
    """Options as one object: with a list of texts, or with a text per letter."""
    at = here(column)
    inner = next((k for k in _LISTS if all(isinstance(v.get(k), list) for v in seen)), None)
    if inner is not None:
        return f"{at}.{inner}", f"{at}.label", f"{column!r} holds texts"
    if all(len(v) > 1 and all(map(_is_text, v.values())) for v in seen):
        return f"{at}.values() | list", f"{at}.keys() | list", f"{column!r} holds a text per letter"
    return None


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


# How values of a known form (`names.yaml`) become texts, letters of options, or yes and no.

_YES_NO = re.compile(
    r"(?:is|are|was|were|am|do|does|did|can|could|will|would|has|have|had|should|shall|may|might|"
    r"must)\b",
    re.IGNORECASE,
)
#: Names of columns whose whole numbers mean classes.
_CLASS = re.compile(r"^(?:label|labels|class|gold|target|cls|y)(?:[ _-]?(?:id|idx|index))?$", re.I)


def _has_text(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("text"), str)


#: Name of a test in `names.yaml` → whether a value passes it, with the test's argument.
_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "holds": lambda value, part: isinstance(value, str) and part in value,
    "json_list": lambda value, _: is_json_list(value),
    "key": lambda value, key: isinstance(value, dict) and key in value,
    "pattern": lambda value, sign: isinstance(value, str) and bool(re.match(sign, value)),
    "texts": lambda value, _: (
        isinstance(value, list) and value != [] and all(map(_has_text, value))
    ),
}
_FORMS = _TABLE["forms"]


def _fits(form: dict[str, Any], seen: Sequence[Any], options: Sequence[list[str]]) -> bool:
    tests = [(_TESTS[name], argument) for name, argument in form.items() if name in _TESTS]
    if not seen or not all(test(value, argument) for test, argument in tests for value in seen):
        return False
    if "repeats" in form:
        return all(value in listed for value, listed in zip(seen, options, strict=True))
    if "counts" in form:  # from 0 or from 1
        numbers, most = [*map(int, seen)], max(map(len, options))
        return (
            (min(numbers) >= 1 and max(numbers) == most) if form["counts"] else max(numbers) < most
        )
    return "parts" not in form or len({len(value.split(form["parts"])) for value in seen}) <= 3


def _apply(
    guess: Guess, forms: str, column: str, seen: Sequence[Any], *,
    options: Sequence[list[str]] = (), inside: str = "",
) -> bool:  # fmt: skip
    """Map a field to the first form that fits its column's values; false when none does.

    Args:
        forms: The field, or `letters` of the references.
        options: Those of each value.
        inside: Where in the column the values are.
    """
    form = next((form for form in _FORMS[forms] if _fits(form, seen, options)), None)
    if form is not None:
        name, take = "references" if forms == "letters" else forms, form.get("take")
        value = column
        if take is not None:
            taken = take.replace("OPTIONS", _inside(guess.fields.get("choices")))
            value = f"{{{{ {taken.replace('HERE', here(column) + inside)} }}}}"
        guess.put(name, value, form["why"].replace("HERE", repr(column)))
    return form is not None


def read_choices(guess: Guess, table: Table) -> None:
    """Map options that are no list: texts of JSON or with separators, and objects."""
    column = guess.plain("choices")
    if column is None:
        return
    seen = [value for value in table.values(column) if value not in (None, "")]
    if not seen:
        guess.drop("choices")
    elif not all(map(is_object, seen)):
        _apply(guess, "choices", column, seen)
    elif (taken := stored(column, seen)) is not None:
        texts, guess.labels, why = taken
        guess.put("choices", f"{{{{ {texts} }}}}", why)
    else:
        guess.doubts.append(
            f"{column!r}, whose options are objects: write fields.choices that gives texts"
        )
        if not guess.is_named("choices"):
            guess.drop("choices")


def read_references(guess: Guess, table: Table) -> None:
    """Tests take the place of references; answers to options become letters."""
    if "tests" in guess.fields:
        guess.put("references", guess.fields["tests"], guess.reasons["tests"])
        guess.drop("tests")
        return
    column = guess.plain("references")
    if column is None:
        return
    seen = [value for value in table.values(column) if value not in (None, "")]
    if "choices" in guess.fields:
        _letters(guess, column, table)
    elif not _apply(guess, "references", column, seen):
        objects = bool(seen) and all(isinstance(value, dict) for value in seen)
        # Taken as they are, the names of an object's parts would be the answers.
        if objects and not guess.is_named("references"):
            guess.drop("references")


def _letters(guess: Guess, column: str, table: Table) -> None:
    """An answer to options as the letter of the right one, however the table states it."""
    listed = table.values(guess.fields["choices"])
    pairs = [
        (value, [str(option) for option in options])
        for value, options in zip(table.seen(column), listed, strict=True)
        if value not in (None, "") and isinstance(options, list) and options
    ]
    if not pairs or _by_label(guess, column, table):
        return
    single = all(isinstance(value, list) and len(value) == 1 for value, _ in pairs)
    texts = [str(value[0] if single else value).strip() for value, _ in pairs]
    options = [options for _, options in pairs]
    _apply(guess, "letters", column, texts, options=options, inside="[0]" * single)
    if guess.reasons["references"].endswith("counts from 0") and "0" not in texts:
        guess.doubts.append(
            f"whether {column!r} counts the options from 0 or from 1: neither 0 nor "
            f"{max(map(len, options))} occurs, and 0 was taken (fields.references)"
        )


def _by_label(guess: Guess, column: str, table: Table) -> bool:
    """Map an answer that is one of the labels stored with the options; false when it is not."""
    if not guess.labels:
        return False
    listed = table.values(f"{{{{ {guess.labels} }}}}")
    if not all(isinstance(labels, list) for labels in listed):
        return False
    if all(labels == [*ascii_uppercase[: len(labels)]] for labels in listed):
        return False  # the labels are the letters themselves
    if not all(a in labels for a, labels in zip(table.seen(column), listed, strict=True)):
        return False
    value = f"{{{{ ({guess.labels}).index({here(column)}) | letter }}}}"
    guess.put("references", value, f"{column!r} is one of the options' labels")
    return True


def _inside(choices: Any) -> str:
    """The expression of the options, to be used inside another."""
    if isinstance(choices, list):
        return "[" + ", ".join(map(here, choices)) + "]"
    text = str(choices)
    return f"({text.strip('{} ')})" if text.startswith("{{") else here(text)


def read_classes(guess: Guess, table: Table) -> None:
    """True and false become yes and no; numbers of classes are no answers without their names."""
    column = guess.plain("references")
    if column is None or guess.is_named("references") or "choices" in guess.fields:
        return
    if column not in table.rows[0]:
        return
    seen = [value for value in table.seen(column) if value not in (None, "")]
    numbers = {str(value).strip() for value in seen}
    if seen and all(isinstance(value, bool) for value in seen):
        value = f"{{{{ 'yes' if {here(column)} else 'no' }}}}"
        guess.put("references", value, f"{column!r} is true or false")
    elif seen and numbers <= {"0", "1"} and _asks_yes_or_no(guess, table):
        value = f"{{{{ ['no', 'yes'][{here(column)} | int] }}}}"
        guess.put("references", value, f"{column!r}, 0 as no and 1 as yes: the questions ask that")
    elif _CLASS.match(column) and all(re.fullmatch(r"-?\d", number) for number in numbers):
        guess.drop("references")
        guess.doubts.append(
            f"{column!r}, whose numbers ({', '.join(sorted(numbers))}) mean classes: write "
            "their names into the recipe, as in fields.references: "
            f"\"{{{{ ['no', 'yes'][{column} | int] }}}}\""
        )


def _asks_yes_or_no(guess: Guess, table: Table) -> bool:
    """Whether every question starts as one that yes or no answers."""
    column = guess.origins.get("question", "")
    return all(_YES_NO.match(str(value or "").strip()) for value in table.seen(column))


def read_absent(guess: Guess, table: Table) -> None:
    """A column that some rows lack is empty there, and no fault of the recipe."""
    for name in ("references", "id", "task"):
        column = guess.plain(name)
        lacking = sum(column not in row for row in table.rows) if column is not None else 0
        if lacking:
            why = f"{guess.reasons[name]}; {lacking} of {len(table.rows)} rows lack it"
            guess.put(name, f"{{{{ _row.get({column!r}) }}}}", why)


# Questions within other values, with a passage before them, and options that a row mixes.

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
    names = set(QUESTION_ROLES["question"]["names"])
    known = [column for column in table.columns if plain(column) in names]
    for column in known:
        seen = table.seen(column)
        if all(isinstance(v, list) and all(isinstance(t, str | dict) for t in v) for v in seen):
            guess.doubts.append(
                f"{column!r}, which holds several questions a row: `each` of the source in the "
                "recipe takes one after the other, as `routeyard sources quac` does; then "
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
    if about and not guess.is_named("question"):
        parts = [f"{{{{ {item} }}}}" for item in (*map(here, about), expression)]
        why = f"{column!r}, after {', '.join(map(repr, about))}, which it is about"
        guess.put("question", "\n\n".join(parts), why)


def _passages(table: Table) -> list[str]:
    """Columns of text that a question needs, in every row."""
    return [
        column
        for column in table.columns
        if re.sub(r"[\W_]+", "", column).lower() in PASSAGES
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


# Which columns of a stranger's table hold the question, the answer and the options: a guess.
#
# Names are looked at first (in several languages), then contents. Every guess has a reason, so that
# a person can tell a good one from a bad one.

#: Columns that each hold one option: `A`, `option_b`, `choice3`, `opa`.
_ONE_OPTION = re.compile(r"^(?:option|choice|answer|opt|op|ans|opcion|wahl|选项)?[ _-]?([a-j]|\d)$")
#: The same under any other name, of which there must be three: `ending0`, `holding_4`.
_ANY_OPTION = re.compile(r"^[^\W\d_]{3,20}[ _-]?(\d)$")
#: Last words of names whose values name a row: `Ticket No`, `case_ref`.
_NUMBERING = re.compile(
    r"(?:^|[\s_\-.])(?:id|no|nr|number|num|key|ref|code|[#№])\.?(?:\s*[#№])?$", re.IGNORECASE
)


def guess_columns(rows: Sequence[Row], named_columns: Mapping[str, str] | None = None) -> Guess:
    """The mapping of a table's columns, from its first rows.

    Args:
        rows: Some rows; two hundred are plenty.
        named_columns: field → column that a person named; it is taken as it is.
    """
    table = Table(rows)
    guess = Guess(table.columns)
    for name, column in (named_columns or {}).items():
        guess.take(name, column, GIVEN)
        # An expression is mapped as it is, unless a column has that name.
        guess.fields[name] = reach(column) if column in table.columns else column
    wrong = wrong_options(guess.free)
    options = _option_columns(guess.free)
    guess.used |= {*options, *wrong}
    several = nested_question(guess, table)
    settled = {*guess.fields, *["question"] * several, *["choices"] * bool(options or wrong)}
    for name, role in QUESTION_ROLES.items():
        named = None if name in settled else column_of(role, guess.free, table)
        if named is not None:
            guess.take(name, named, f"by its name, {named!r}")
    if not several:
        _by_content(guess, table)
    if len(options) >= 2 and "choices" not in guess.fields:
        one_each = [reach(column) for column in options]
        guess.put("choices", one_each, f"one column each: {', '.join(options)}")
    _numbered_id(guess, table)
    if "question" not in guess.fields and not several:
        question_inside(guess, table)
    read_choices(guess, table)
    read_references(guess, table)
    read_question(guess, table)
    mix_marked(guess, table)
    mix_wrong(guess, wrong)
    read_classes(guess, table)
    taken = "id" in guess.fields and not guess.is_named("id")
    if taken and not distinct(table.values(guess.fields["id"])):
        _repeated_id(guess, table)
    read_absent(guess, table)
    return guess


def _repeated_id(guess: Guess, table: Table) -> None:
    """Take back an id that several rows share or that rows lack, so that rows are numbered."""
    column = guess.origins["id"]
    values = present(table.values(guess.fields["id"]))
    counts = Counter(map(str, values))
    again = [value for value, count in counts.items() if count > 1]
    rows, lacking = sum(counts[value] for value in again), len(table.rows) - len(values)
    guess.drop("id")
    guess.used.discard(column)
    says = [f"{lacking} have none"] * bool(lacking)
    says += [f"{rows} share one with another row (such as {again[0]!r})" for _ in again[:1]]
    guess.doubts.append(
        f"the id in {column!r}: of {len(table.rows)} rows looked at {' and '.join(says)}, so that "
        "rows are numbered instead and all are kept: take repeated rows out, or map fields.id to "
        "what tells them apart"
    )


def _numbered_id(guess: Guess, table: Table) -> None:
    """Map the id to a column whose name ends as that of a number does, and that never repeats."""
    if "id" in guess.fields:
        return
    numbering = (column for column in guess.free if _NUMBERING.search(column.strip()))
    numbered = next((column for column in numbering if distinct(table.seen(column))), None)
    if numbered is not None:
        guess.take("id", numbered, f"by its name, {numbered!r}, and it differs in every row")


def _option_columns(columns: Sequence[str]) -> list[str]:
    """Columns that hold one option each, in order; none unless they run from the first on."""
    runs: dict[str, dict[str, str]] = {}
    for column in columns:
        plain = column.strip().lower()
        match = _ONE_OPTION.match(plain) or _ANY_OPTION.match(plain)
        if match and not wrong_options([column]):
            runs.setdefault(plain[: match.start(1)], {}).setdefault(match[1], column)
    for start, run in runs.items():
        least = 2 if _ONE_OPTION.match(start + "1") else 3
        for signs in ("abcdefghij", "123456789", "0123456789"):
            if len(run) >= least and sorted(run) == list(signs[: len(run)]):
                return [run[sign] for sign in sorted(run)]
    return []


def _by_content(guess: Guess, table: Table) -> None:
    """The longest text is the question, the column beside it that is mostly filled the answer."""

    there = {column: present(table.seen(column)) for column in guess.free}

    def asks(column: str) -> tuple[int, bool, float]:
        texts = there[column]
        marks = sum(t.rstrip().endswith(("?", "？", "؟")) for t in texts)
        return marks, len(texts) == len(table.rows), mean_length(texts)

    # A row without its question cannot be asked: it is left out, so there are few of them.
    texts = [
        column
        for column in guess.free
        if mostly_filled(table.seen(column)) and all(isinstance(v, str) for v in there[column])
    ]
    if "question" not in guess.fields and texts:
        best = max(texts, key=asks)
        if asks(best)[0] or asks(best)[2] >= 15:
            guess.take("question", best, "its texts ask, or are the longest")
    if {"references", "tests"} & guess.fields.keys() or "question" not in guess.fields:
        return
    columns = {column: table.seen(column) for column in guess.free}
    filled = [
        column
        for column, seen in columns.items()
        if all(value not in (None, "") for value in seen) and not consecutive(seen)
    ]
    # Several columns of scores are those of models, whichever of them has no gap.
    if len(filled) == 1 and sum(map(scores, columns.values())) < 2:
        guess.put("references", reach(filled[0]), "the one column that is left and filled")
