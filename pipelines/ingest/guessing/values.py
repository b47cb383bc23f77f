"""What the values of a guessed column are turned into: lists of options, letters, references."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any

from pipelines.ingest.guessing.options import is_object, stored

Row = Mapping[str, Any]
#: Parts of a nested column that hold the answers' texts.
_TEXTS = ("text", "texts", "aliases")
#: What a table writes before each answer: `# 366`.
_MARKED = re.compile(r"\s*#+\s*[^\s#]")
#: `7 (apples)`: a number, and what is counted.
_WITH_UNIT = re.compile(r"^\s*[-+]?[\d.,/]+\s*\([^()]{1,40}\)\s*$")


@dataclass
class Guess:
    """Field → column or Jinja expression, with the reasons in words; `lacks` is what was sought."""

    fields: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    lacks: list[str] = field(default_factory=list)
    #: What a person has to look at, because the rows that were seen cannot tell.
    doubts: list[str] = field(default_factory=list)
    #: Expression of the labels that stand beside the options; empty where there are none.
    labels: str = ""
    #: Columns that nothing was taken from.
    unused: list[str] = field(default_factory=list)

    def say(self, name: str, value: Any, why: str) -> None:
        self.fields[name] = value
        self.reasons[name] = why


def reach(column: str) -> str:
    """How a mapping names a column: as it is, and through the row where it would read as Jinja."""
    return column if "{{" not in column and "{%" not in column else f"{{{{ _row[{column!r}] }}}}"


def values(mapping: Any, rows: Sequence[Row]) -> list[Any]:
    """What a mapping gives for each row; None where it fails."""
    from pipelines.errors import RecipeError
    from pipelines.mapping.jinja import compile_field

    def one(text: str, row: Row) -> Any:
        try:
            return compile_field(text, where="guess")(row)
        except RecipeError:
            return None

    if isinstance(mapping, list):
        return [[one(text, row) for text in mapping] for row in rows]
    return [one(mapping, row) for row in rows]


def settle_choices(found: Guess, rows: Sequence[Row]) -> None:
    """Lists as they are; texts of JSON or with separators are taken apart."""
    mapped = found.fields.get("choices")
    if not isinstance(mapped, str) or mapped.startswith("{{"):
        return
    column, seen = mapped, [v for v in values(mapped, rows) if v not in (None, "")]
    if not seen:
        del found.fields["choices"]
        return
    if all(map(is_object, seen)):
        _objects(found, column, seen)
        return
    if not all(isinstance(v, str) for v in seen):
        return
    if all(_json_list(v) for v in seen):
        found.say(
            "choices", f"{{{{ _row[{column!r}] | from_json }}}}", f"{column!r} is a JSON list"
        )
        return
    for sign in ("|", "\n", ";", " / ", ","):
        if all(sign in v for v in seen) and len({len(v.split(sign)) for v in seen}) <= 3:
            quoted = json.dumps(sign)
            value = f"{{{{ _row[{column!r}] | split({quoted}) }}}}"
            found.say("choices", value, f"{column!r} separates them by {sign!r}")
            return


def _objects(found: Guess, column: str, seen: Sequence[Any]) -> None:
    """Options that are objects are taken by their texts, or not at all: they are no texts."""
    taken = stored(column, seen)
    if taken is not None:
        found.say("choices", f"{{{{ {taken.texts} }}}}", taken.why)
        found.labels = taken.labels
        return
    found.doubts.append(
        f"{column!r}, whose options are objects: write fields.choices that gives texts"
    )
    if found.reasons["choices"] != "as given":
        del found.fields["choices"], found.reasons["choices"]


def _json_list(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list)
    except ValueError:
        return False


def settle_references(found: Guess, rows: Sequence[Row]) -> None:
    """Tests stand in for references; answers to options become letters."""
    if "tests" in found.fields:
        found.say("references", found.fields.pop("tests"), found.reasons.pop("tests"))
        return
    mapped = found.fields.get("references")
    if not isinstance(mapped, str) or mapped.startswith("{{"):
        return
    seen = [v for v in values(mapped, rows) if v not in (None, "")]
    if "choices" in found.fields:
        _letters(found, mapped, rows)
    elif seen and all(isinstance(v, str) and _MARKED.match(v) for v in seen):
        value = f"{{{{ _row[{mapped!r}].lstrip('# ') }}}}"
        found.say("references", value, f"{mapped!r}, what stands after the #")
    elif seen and all(isinstance(v, str) and "####" in v for v in seen):
        value = f"{{{{ _row[{mapped!r}].split('####')[-1].strip() }}}}"
        found.say("references", value, f"{mapped!r}, what stands after ####")
    elif seen and all(isinstance(v, str) and "\\boxed{" in v for v in seen):
        found.say("references", f"{{{{ _row[{mapped!r}] | boxed }}}}", f"{mapped!r}, what is boxed")
    elif seen and all(isinstance(v, str) and v.startswith("[") and _json_list(v) for v in seen):
        value = f"{{{{ _row[{mapped!r}] | from_json }}}}"
        found.say("references", value, f"{mapped!r} is a JSON list")
    elif seen and all(isinstance(v, str) and _WITH_UNIT.match(v) for v in seen):
        value = f"{{{{ _row[{mapped!r}].split('(')[0].strip() }}}}"
        found.say("references", value, f"{mapped!r}, the number before the unit")
    elif seen and all(_texts_in(v) for v in seen):
        value = f"{{{{ _row[{mapped!r}] | map(attribute='text') | list }}}}"
        found.say("references", value, f"{mapped!r} holds texts")
    elif seen and all(isinstance(v, dict) for v in seen):
        inner = next((k for k in _TEXTS if all(k in v for v in seen)), None)
        if inner:
            value = f"{{{{ _row[{mapped!r}].{inner} }}}}"
            found.say("references", value, f"{mapped!r} holds texts")
        elif found.reasons["references"] != "as given":
            # Taken as they are, the names of its parts would be the answers.
            del found.fields["references"], found.reasons["references"]


def _texts_in(value: Any) -> bool:
    """Whether it is a list of objects with a text each."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and isinstance(one.get("text"), str) for one in value)
    )


def _letters(found: Guess, column: str, rows: Sequence[Row]) -> None:
    """An answer to options as the letter of the right one, whatever the table writes."""
    options = [v if isinstance(v, list) else [] for v in values(found.fields["choices"], rows)]
    pairs = [
        (row.get(column), [str(one) for one in choices])
        for row, choices in zip(rows, options, strict=True)
        if row.get(column) not in (None, "") and choices
    ]
    if not pairs:
        return
    named = _by_label(found, column, rows)
    if named:
        return
    single = [value[0] for value, _ in pairs if isinstance(value, list) and len(value) == 1]
    if len(single) == len(pairs):
        pairs = [(value, choices) for value, (_, choices) in zip(single, pairs, strict=True)]
        here = f"_row[{column!r}][0]"
    else:
        here = f"_row[{column!r}]"
    texts = [str(value).strip() for value, _ in pairs]
    wide = max(len(choices) for _, choices in pairs)
    if all(text in choices for text, (_, choices) in zip(texts, pairs, strict=True)):
        listed = _inside(found.fields["choices"])
        if listed:
            value = f"{{{{ {listed}.index({here}) | letter }}}}"
            found.say("references", value, f"{column!r} repeats the right option")
        return
    if all(re.fullmatch(r"[A-Za-z]", text) for text in texts):
        value = column if all(t.isupper() for t in texts) else f"{{{{ {here} | upper }}}}"
        found.say("references", value, f"{column!r} holds the letter")
    elif all(re.fullmatch(r"\d+", text) for text in texts):
        numbers = [int(text) for text in texts]
        if max(numbers) < wide:
            found.say("references", f"{{{{ {here} | letter }}}}", f"{column!r} counts from 0")
            if 0 not in numbers:
                found.doubts.append(
                    f"whether {column!r} counts the options from 0 or from 1: neither 0 nor "
                    f"{wide} occurs, and 0 was taken (fields.references)"
                )
        elif 0 not in numbers and max(numbers) == wide:
            value = f"{{{{ ({here} | int - 1) | letter }}}}"
            found.say("references", value, f"{column!r} counts from 1")
    elif all(re.match(r"\(?[A-Ja-j][).:]", text) for text in texts):
        value = f"{{{{ {here}.strip('( ')[0] | upper }}}}"
        found.say("references", value, f"{column!r} starts with the letter")


def _by_label(found: Guess, column: str, rows: Sequence[Row]) -> bool:
    """Options that are stored with their labels: the answer is one of those."""
    if not found.labels:
        return False
    listed = values(f"{{{{ {found.labels} }}}}", rows)
    answers = [row.get(column) for row in rows]
    if not all(isinstance(one, list) for one in listed):
        return False
    if all(one == [*ascii_uppercase[: len(one)]] for one in listed):
        return False  # the labels are the letters themselves
    if not all(a in labels for a, labels in zip(answers, listed, strict=True)):
        return False
    value = f"{{{{ ({found.labels}).index(_row[{column!r}]) | letter }}}}"
    found.say("references", value, f"{column!r} is one of the options' labels")
    return True


def _inside(choices: Any) -> str:
    """The expression of the options, to be used inside another; empty when there is none."""
    if isinstance(choices, list):
        return "[" + ", ".join(f"_row[{column!r}]" for column in choices) + "]"
    text = str(choices)
    if text.startswith("{{"):
        return f"({text.strip('{} ')})"
    return f"_row[{text!r}]"


def settle_id(found: Guess, rows: Sequence[Row]) -> None:
    """An id that repeats or is empty is none: rows are numbered instead."""
    if "id" in found.fields and found.reasons["id"] != "as given":
        seen = [str(v) for v in values(found.fields["id"], rows) if v not in (None, "")]
        if len(set(seen)) != len(rows):
            del found.fields["id"], found.reasons["id"]
