"""How values of a known form become texts: a table of forms, each with its expression.

In expressions and reasons HERE is the column's value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from pipelines.ingest.guessing.guess import Guess, Table, here
from pipelines.ingest.guessing.options import is_object, stored
from pipelines.ingest.guessing.values import is_json_list

#: `7 (apples)`: a number, and what is counted.
_WITH_UNIT = re.compile(r"^\s*[-+]?[\d.,/]+\s*\([^()]{1,40}\)\s*$")
_YES_NO = re.compile(
    r"(?:is|are|was|were|am|do|does|did|can|could|will|would|has|have|had|should|shall|may|might|"
    r"must)\b",
    re.IGNORECASE,
)
#: Names of columns whose whole numbers stand for classes.
_CLASS = re.compile(r"^(?:label|labels|class|gold|target|cls|y)(?:[ _-]?(?:id|idx|index))?$", re.I)


@dataclass(frozen=True, slots=True)
class Form:
    """A form of a column's values: a test of all of them, the expression, and the reason."""

    fits: Callable[[Sequence[Any]], bool]
    expression: str
    reason: str


def _texts(pattern: str) -> Callable[[Sequence[Any]], bool]:
    found = re.compile(pattern)
    return lambda seen: all(isinstance(v, str) and found.match(v) for v in seen)


def _holds(inside: str) -> Callable[[Sequence[Any]], bool]:
    return lambda seen: all(isinstance(v, str) and inside in v for v in seen)


def _parted(sign: str) -> Callable[[Sequence[Any]], bool]:
    def fits(seen: Sequence[Any]) -> bool:
        return _holds(sign)(seen) and len({len(v.split(sign)) for v in seen}) <= 3

    return fits


def _with_key(key: str) -> Callable[[Sequence[Any]], bool]:
    return lambda seen: all(isinstance(v, dict) and key in v for v in seen)


def _lists_of_texts(seen: Sequence[Any]) -> bool:
    return all(
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and isinstance(one.get("text"), str) for one in value)
        for value in seen
    )


_CHOICES = (
    Form(lambda seen: all(map(is_json_list, seen)), "HERE | from_json", "HERE is a JSON list"),
    *(
        Form(_parted(sign), f"HERE | split({json.dumps(sign)})", f"HERE separates them by {sign!r}")
        for sign in ("|", "\n", ";", " / ", ",")
    ),
)
_REFERENCES = (
    Form(_texts(r"\s*#+\s*[^\s#]"), "HERE.lstrip('# ')", "HERE, the text after the #"),
    Form(_holds("####"), "HERE.split('####')[-1].strip()", "HERE, the text after ####"),
    Form(_holds("\\boxed{"), "HERE | boxed", "HERE, the text in the last box"),
    Form(
        lambda seen: all(is_json_list(v) and v.startswith("[") for v in seen),
        "HERE | from_json",
        "HERE is a JSON list",
    ),
    Form(
        _texts(_WITH_UNIT.pattern), "HERE.split('(')[0].strip()", "HERE, the number before the unit"
    ),
    Form(_lists_of_texts, "HERE | map(attribute='text') | list", "HERE holds texts"),
    *(
        Form(_with_key(key), f"HERE.{key}", "HERE holds texts")
        for key in ("text", "texts", "aliases")
    ),
)


def apply(guess: Guess, name: str, forms: Sequence[Form], seen: Sequence[Any]) -> bool:
    """Map a field to the first form that fits its column's values; false when none does."""
    column = str(guess.plain(name))
    form = next((form for form in forms if seen and form.fits(seen)), None)
    if form is not None:
        value = f"{{{{ {form.expression.replace('HERE', here(column))} }}}}"
        guess.put(name, value, form.reason.replace("HERE", repr(column)))
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
        apply(guess, "choices", _CHOICES, seen)
    elif (taken := stored(column, seen)) is not None:
        guess.put("choices", f"{{{{ {taken.texts} }}}}", taken.why)
        guess.labels = taken.labels
    else:
        guess.doubts.append(
            f"{column!r}, whose options are objects: write fields.choices that gives texts"
        )
        if not guess.given("choices"):
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
    elif not apply(guess, "references", _REFERENCES, seen):
        objects = bool(seen) and all(isinstance(value, dict) for value in seen)
        # Taken as they are, the names of an object's parts would be the answers.
        if objects and not guess.given("references"):
            guess.drop("references")


def _letters(guess: Guess, column: str, table: Table) -> None:
    """An answer to options as the letter of the right one, however the table states it."""
    listed = table.values(guess.fields["choices"])
    pairs = [
        (value, [str(one) for one in options])
        for value, options in zip(table.seen(column), listed, strict=True)
        if value not in (None, "") and isinstance(options, list) and options
    ]
    if not pairs or _by_label(guess, column, table):
        return
    answer = here(column)
    if all(isinstance(value, list) and len(value) == 1 for value, _ in pairs):
        pairs, answer = [(value[0], options) for value, options in pairs], f"{answer}[0]"
    texts = [str(value).strip() for value, _ in pairs]
    if all(text in options for text, (_, options) in zip(texts, pairs, strict=True)):
        inside = _inside(guess.fields["choices"])
        value = f"{{{{ {inside}.index({answer}) | letter }}}}"
        guess.put("references", value, f"{column!r} repeats the right option")
    elif all(re.fullmatch(r"[A-Za-z]", text) for text in texts):
        upper = all(text.isupper() for text in texts)
        value = column if upper else f"{{{{ {answer} | upper }}}}"
        guess.put("references", value, f"{column!r} holds the letter")
    elif all(re.fullmatch(r"\d+", text) for text in texts):
        _counted(guess, column, answer, {*map(int, texts)}, max(len(o) for _, o in pairs))
    elif all(re.match(r"\(?[A-Ja-j][).:]", text) for text in texts):
        value = f"{{{{ {answer}.strip('( ')[0] | upper }}}}"
        guess.put("references", value, f"{column!r} starts with the letter")


def _counted(guess: Guess, column: str, answer: str, numbers: set[int], options: int) -> None:
    """Numbers of options, from 0 or from 1."""
    if max(numbers) < options:
        guess.put("references", f"{{{{ {answer} | letter }}}}", f"{column!r} counts from 0")
        if 0 not in numbers:
            guess.doubts.append(
                f"whether {column!r} counts the options from 0 or from 1: neither 0 nor "
                f"{options} occurs, and 0 was taken (fields.references)"
            )
    elif 0 not in numbers and max(numbers) == options:
        value = f"{{{{ ({answer} | int - 1) | letter }}}}"
        guess.put("references", value, f"{column!r} counts from 1")


def _by_label(guess: Guess, column: str, table: Table) -> bool:
    """Map an answer that is one of the labels stored with the options; false when it is none."""
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
    if column is None or guess.given("references") or "choices" in guess.fields:
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
            f"{column!r}, whose numbers ({', '.join(sorted(numbers))}) stand for classes: write "
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
