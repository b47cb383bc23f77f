"""Which columns of a stranger's table hold the question, the answer and the options: a guess.

Names are looked at first (in several languages), then contents. A guess says why, so that a
person can tell a good one from a bad one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

Row = Mapping[str, Any]

#: field → names that columns have for it, the most telling first; compared without case and signs.
_NAMES: dict[str, tuple[str, ...]] = {
    "question": (
        "question", "questions", "prompt", "query", "problem", "question_text", "questiontext",
        "instruction", "problem_statement", "frage", "aufgabe", "pregunta", "pergunta", "domanda",
        "énoncé", "вопрос", "问题", "問題", "題目", "题目", "質問", "질문", "سؤال", "prashn",
        "user_input", "input", "stem", "q", "goal", "sentence", "ctx", "context", "text",
    ),
    "references": (
        "answer", "answers", "reference", "references", "correct_answer", "correctanswer",
        "right_answer", "gold", "gold_answer", "ground_truth", "target", "expected",
        "expected_answer", "gt", "expected_output", "final_answer", "answerkey", "answer_key",
        "correct",
        "correct_option", "correct_choice", "label", "solution", "antwort", "lösung",
        "richtige_antwort", "réponse", "reponse", "respuesta", "resposta", "risposta", "ответ",
        "答案", "回答", "正解", "답", "الجواب", "jawaban", "output", "response", "cop", "a",
    ),
    "tests": ("test", "tests", "test_list", "unit_tests", "test_code", "asserts", "check"),
    "choices": (
        "choices", "options", "choice", "option", "alternatives", "answer_choices", "candidates",
        "optionen", "antwortmöglichkeiten", "opciones", "opções", "scelte", "варианты", "选项",
        "選項", "選択肢", "보기", "endings",
    ),
    "id": (
        "id", "qid", "uid", "question_id", "questionid", "task_id", "query_id", "uuid", "nr",
        "no", "number", "key", "index", "idx",
    ),
    "task": (
        "task", "subject", "category", "topic", "subset", "dataset", "fach", "thema", "kategorie",
        "materia", "tema", "matière", "предмет", "科目", "类别", "type",
    ),
}  # fmt: skip
#: Columns that each hold one option: `A`, `option_b`, `choice3`, `opa`.
_ONE_OPTION = re.compile(r"^(?:option|choice|answer|opt|op|ans|opcion|wahl|选项)?[ _-]?([a-j]|\d)$")
_CODE = re.compile(r"\bassert\b|\bdef check\(|\bunittest\b")


@dataclass
class Guess:
    """Field → column or Jinja expression, with the reasons in words; `lacks` is what was sought."""

    fields: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    lacks: list[str] = field(default_factory=list)
    #: What a person has to look at, because the rows that were seen cannot tell.
    doubts: list[str] = field(default_factory=list)

    def say(self, name: str, value: Any, why: str) -> None:
        self.fields[name] = value
        self.reasons[name] = why


def guess_columns(rows: Sequence[Row], given: Mapping[str, str] | None = None) -> Guess:
    """The mapping of a table's columns, from its first rows.

    Args:
        rows: Some rows; two hundred are plenty.
        given: field → column that a person named; never guessed over.
    """
    found = Guess()
    columns = list(dict.fromkeys(str(name) for row in rows for name in row))
    for name, column in (given or {}).items():
        found.say(name, reach(column), "as given")
    used = set((given or {}).values())
    options = _option_columns(columns, used)
    used |= set(options)
    for name in ("question", "tests", "references", "choices", "id", "task"):
        if name in found.fields:
            continue
        named = _by_name(name, [c for c in columns if c not in used], rows)
        if named is not None:
            found.say(name, reach(named), f"by its name, {named!r}")
            used.add(named)
    _by_content(found, columns, used, rows)
    if len(options) >= 2 and "choices" not in found.fields:
        found.say("choices", [reach(c) for c in options], f"one column each: {', '.join(options)}")
    _choices(found, rows)
    _references(found, rows)
    _settle_id(found, rows)
    for name in ("question", "references"):
        if name not in found.fields:
            found.lacks.append(name)
    return found


def reach(column: str) -> str:
    """How a mapping names a column: as it is, and through the row where it would read as Jinja."""
    return column if "{{" not in column and "{%" not in column else f"{{{{ _row[{column!r}] }}}}"


def values(mapping: Any, rows: Sequence[Row]) -> list[Any]:
    """What a mapping gives for each row; None where it fails."""
    from pipelines.errors import RecipeError
    from pipelines.jinja import compile_field

    def one(text: str, row: Row) -> Any:
        try:
            return compile_field(text, where="guess")(row)
        except RecipeError:
            return None

    if isinstance(mapping, list):
        return [[one(text, row) for text in mapping] for row in rows]
    return [one(mapping, row) for row in rows]


def _plain(name: str) -> str:
    return re.sub(r"[\s_\-.:/()\[\]]+", "", name).lower()


def _by_name(name: str, columns: list[str], rows: Sequence[Row]) -> str | None:
    by_plain = {_plain(column): column for column in reversed(columns)}
    for known in _NAMES[name]:
        column = by_plain.get(_plain(known))
        if column is not None and _fits(name, [row.get(column) for row in rows]):
            return column
    long = [_plain(known) for known in _NAMES[name] if len(_plain(known)) >= 4]
    for known in long:  # `the_question_en`, `Correct Answer (text)`
        for plain, column in by_plain.items():
            if known in plain and _fits(name, [row.get(column) for row in rows]):
                return column
    return None


def _fits(name: str, found: list[Any]) -> bool:
    """Whether the values can be what the name says."""
    there = [value for value in found if value not in (None, "", [])]
    if not there:
        return False
    if name == "question":
        return all(isinstance(v, str) for v in there) and _mean_length(there) >= 8
    if name == "choices":
        return all(not isinstance(v, int | float) for v in there)
    if name == "tests":
        return sum(bool(_CODE.search(str(v))) for v in there) > len(there) / 2
    if name == "task":
        return all(isinstance(v, str) for v in there) and len(set(there)) <= max(1, len(there) // 2)
    return True


def _mean_length(texts: list[Any]) -> float:
    return sum(len(str(text)) for text in texts) / max(1, len(texts))


def _option_columns(columns: list[str], used: set[str]) -> list[str]:
    """Columns that hold one option each, in order; none unless they run from the first on."""
    found: dict[str, list[tuple[str, str]]] = {}
    for column in columns:
        match = _ONE_OPTION.match(_plain_keep(column))
        if match and column not in used:
            start = _plain_keep(column)[: match.start(1)]
            found.setdefault(start, []).append((match[1], column))
    for run in found.values():
        marks = [mark for mark, _ in sorted(run)]
        for signs in ("abcdefghij", "123456789", "0123456789"):
            if len(run) >= 2 and marks == list(signs[: len(run)]):
                return [column for _, column in sorted(run)]
    return []


def _plain_keep(column: str) -> str:
    return column.strip().lower()


def _by_content(found: Guess, columns: list[str], used: set[str], rows: Sequence[Row]) -> None:
    """The longest text is the question, the column beside it that is mostly filled the answer."""
    free = [c for c in columns if c not in used]
    texts = [c for c in free if any(isinstance(row.get(c), str) and row[c] for row in rows)]
    if "question" not in found.fields and texts:
        asks = {
            c: (
                sum(str(row.get(c) or "").rstrip().endswith(("?", "？", "؟")) for row in rows),
                _mean_length([row.get(c) or "" for row in rows]),
            )
            for c in texts
        }
        best = max(asks, key=lambda c: asks[c])
        if asks[best][0] or asks[best][1] >= 15:
            found.say("question", reach(best), "its texts ask, or are the longest")
            used.add(best)
    answers = [c for c in columns if c not in used and any(row.get(c) is not None for row in rows)]
    if not {"references", "tests"} & set(found.fields) and "question" in found.fields:
        filled = [c for c in answers if all(row.get(c) not in (None, "") for row in rows)]
        filled = [c for c in filled if not _counts([row[c] for row in rows])]
        if len(filled) == 1:
            found.say("references", reach(filled[0]), "the one column that is left and filled")


def _counts(seen: list[Any]) -> bool:
    """Whether values only number the rows."""
    try:
        numbers = [int(str(value)) for value in seen]
    except ValueError:
        return False
    return all(b - a == 1 for a, b in pairwise(numbers))


def _choices(found: Guess, rows: Sequence[Row]) -> None:
    """Lists as they are; texts of JSON or with separators are taken apart."""
    mapped = found.fields.get("choices")
    if not isinstance(mapped, str):
        return
    column, seen = mapped, [v for v in values(mapped, rows) if v not in (None, "")]
    if not seen:
        del found.fields["choices"]
        return
    if all(isinstance(v, dict) for v in seen):
        inner = next((k for k in ("text", "texts", "choices") if k in seen[0]), None)
        if inner:
            found.say("choices", f"{{{{ _row[{column!r}].{inner} }}}}", f"{column!r} holds texts")
        elif all(set(v) <= set("ABCDEFGHIJ") for v in seen):
            value = f"{{{{ _row[{column!r}].values() | list }}}}"
            found.say("choices", value, f"{column!r} holds a text per letter")
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


def _json_list(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list)
    except ValueError:
        return False


def _references(found: Guess, rows: Sequence[Row]) -> None:
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
    elif seen and all(isinstance(v, str) and "####" in v for v in seen):
        value = f"{{{{ _row[{mapped!r}].split('####')[-1].strip() }}}}"
        found.say("references", value, f"{mapped!r}, what stands after ####")
    elif seen and all(isinstance(v, str) and "\\boxed{" in v for v in seen):
        found.say("references", f"{{{{ _row[{mapped!r}] | boxed }}}}", f"{mapped!r}, what is boxed")
    elif seen and all(isinstance(v, str) and v.startswith("[") and _json_list(v) for v in seen):
        value = f"{{{{ _row[{mapped!r}] | from_json }}}}"
        found.say("references", value, f"{mapped!r} is a JSON list")
    elif seen and all(isinstance(v, dict) and "text" in v for v in seen):
        found.say("references", f"{{{{ _row[{mapped!r}].text }}}}", f"{mapped!r} holds texts")


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
    texts = [str(value).strip() for value, _ in pairs]
    wide = max(len(choices) for _, choices in pairs)
    here = f"_row[{column!r}]"
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


def _inside(choices: Any) -> str:
    """The expression of the options, to be used inside another; empty when there is none."""
    if isinstance(choices, list):
        return "[" + ", ".join(f"_row[{column!r}]" for column in choices) + "]"
    text = str(choices)
    if text.startswith("{{"):
        return f"({text.strip('{} ')})"
    return f"_row[{text!r}]"


def _settle_id(found: Guess, rows: Sequence[Row]) -> None:
    """An id that repeats or is empty is none: rows are numbered instead."""
    if "id" in found.fields and found.reasons["id"] != "as given":
        seen = [str(v) for v in values(found.fields["id"], rows) if v not in (None, "")]
        if len(set(seen)) != len(rows):
            del found.fields["id"], found.reasons["id"]
