"""How values of a known form (`forms.yaml`) become texts, letters of options, or yes and no."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.resources import files
from string import ascii_uppercase
from typing import Any

import yaml

from routeyard.pipelines.ingest.guessing.guess import Guess, Table, here
from routeyard.pipelines.ingest.guessing.options import is_object, stored
from routeyard.pipelines.ingest.guessing.values import is_json_list

_YES_NO = re.compile(
    r"(?:is|are|was|were|am|do|does|did|can|could|will|would|has|have|had|should|shall|may|might|"
    r"must)\b",
    re.IGNORECASE,
)
#: Names of columns whose whole numbers mean classes.
_CLASS = re.compile(r"^(?:label|labels|class|gold|target|cls|y)(?:[ _-]?(?:id|idx|index))?$", re.I)


def _has_text(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("text"), str)


#: Name of a test in `forms.yaml` → whether a value passes it, with the test's argument.
_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "holds": lambda value, part: isinstance(value, str) and part in value,
    "json_list": lambda value, _: is_json_list(value),
    "key": lambda value, key: isinstance(value, dict) and key in value,
    "pattern": lambda value, sign: isinstance(value, str) and bool(re.match(sign, value)),
    "texts": lambda value, _: (
        isinstance(value, list) and value != [] and all(map(_has_text, value))
    ),
}
_FORMS = yaml.safe_load(files(__package__).joinpath("forms.yaml").read_text(encoding="utf-8"))


def _fits(form: dict[str, Any], seen: Sequence[Any]) -> bool:
    tests = [(_TESTS[name], argument) for name, argument in form.items() if name in _TESTS]
    if not seen or not all(test(value, argument) for test, argument in tests for value in seen):
        return False
    return "parts" not in form or len({len(value.split(form["parts"])) for value in seen}) <= 3


def _apply(guess: Guess, name: str, column: str, seen: Sequence[Any]) -> bool:
    """Map a field to the first form that fits its column's values; false when none does."""
    form = next((form for form in _FORMS[name] if _fits(form, seen)), None)
    if form is not None:
        value = f"{{{{ {form['take'].replace('HERE', here(column))} }}}}"
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
    elif not _apply(guess, "references", column, seen):
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
    _lettered(guess, column, answer, pairs)


def _lettered(
    guess: Guess, column: str, answer: str, pairs: Sequence[tuple[Any, list[str]]]
) -> None:
    """Map references that repeat an option, are its letter or number, or start with the letter."""
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
