"""Which columns of a stranger's table hold the question, the answer and the options: a guess.

Names are looked at first (in several languages), then contents. A guess says why, so that a
person can tell a good one from a bad one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from pipelines.ingest.guessing.nested import (
    settle_absent,
    settle_classes,
    settle_marked,
    settle_question,
    settle_wrong,
    several_questions,
    text_inside,
    turns_column,
    wrong_options,
)
from pipelines.ingest.guessing.recordings import scores
from pipelines.ingest.guessing.values import (
    Guess,
    Row,
    reach,
    settle_choices,
    settle_id,
    settle_references,
)

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
        "答案", "回答", "正解", "답", "الجواب", "jawaban", "result",
        "output", "response", "cop", "a",
    ),
    "tests": ("test", "tests", "test_list", "unit_tests", "test_code", "asserts", "check"),
    "choices": (
        "choices", "options", "choice", "option", "alternatives", "answer_choices", "candidates",
        "optionen", "antwortmöglichkeiten", "opciones", "opções", "scelte", "варианты", "选项",
        "選項", "選択肢", "보기", "endings",
    ),
    "id": (
        "id", "qid", "uid", "question_id", "questionid", "task_id", "query_id", "uuid", "nr",
        "no", "number", "key", "index", "idx", "item_id", "example_id", "sample_id", "doc_id",
        "prompt_id", "item",
    ),
    "task": (
        "task", "subject", "category", "topic", "subset", "dataset", "fach", "thema", "kategorie",
        "materia", "tema", "matière", "предмет", "科目", "类别", "department", "section", "domain",
        "area", "skill", "team", "product", "abteilung", "type",
    ),
}  # fmt: skip
#: Columns that each hold one option: `A`, `option_b`, `choice3`, `opa`.
_ONE_OPTION = re.compile(r"^(?:option|choice|answer|opt|op|ans|opcion|wahl|选项)?[ _-]?([a-j]|\d)$")
#: The same under any other name, of which there must be three: `ending0`, `holding_4`.
_ANY_OPTION = re.compile(r"^[^\W\d_]{3,20}[ _-]?(\d)$")
#: Last words of names whose values name a row: `Ticket No`, `case_ref`.
_NUMBERING = re.compile(r"(?:^|[\s_\-.])(?:id|no|nr|number|num|key|ref|code)\.?$", re.IGNORECASE)
_CODE = re.compile(r"\bassert\b|\bdef check\(|\bunittest\b")


def guess_columns(rows: Sequence[Row], given: Mapping[str, str] | None = None) -> Guess:
    """The mapping of a table's columns, from its first rows.

    Args:
        rows: Some rows; two hundred are plenty.
        given: field → column that a person named; never guessed over.
    """
    found = Guess()
    columns = list(dict.fromkeys(str(name) for row in rows for name in row))
    for name, column in (given or {}).items():
        # An expression is one, unless a column is called so.
        found.say(name, reach(column) if column in columns else column, "as given")
    used = set((given or {}).values())
    options = _option_columns(columns, used)
    wrong = wrong_options([c for c in columns if c not in used])
    used |= {*options, *wrong}
    nested = _nested_question(found, columns, rows)
    used |= {found.fields["question"]} if found.reasons.get("question") == "a chat" else set()
    for name in ("question", "tests", "references", "choices", "id", "task"):
        if name in found.fields or (name == "choices" and (options or wrong)):
            continue
        if name == "question" and nested:
            continue
        named = _by_name(name, [c for c in columns if c not in used], rows)
        if named is not None:
            found.say(name, reach(named), f"by its name, {named!r}")
            used.add(named)
    if not nested:
        _by_content(found, columns, used, rows)
    if len(options) >= 2 and "choices" not in found.fields:
        found.say("choices", [reach(c) for c in options], f"one column each: {', '.join(options)}")
    if "id" not in found.fields:
        numbering = (c for c in columns if c not in used and _NUMBERING.search(c.strip()))
        named = next((c for c in numbering if _distinct([row.get(c) for row in rows])), None)
        if named is not None:
            found.say("id", reach(named), f"by its name, {named!r}, and it differs in every row")
            used.add(named)
    if "question" not in found.fields and not nested:
        inside = text_inside([c for c in columns if c not in used], rows)
        if inside is not None:
            column, key = inside
            found.say(
                "question", f"{{{{ _row[{column!r}][{key!r}] }}}}", f"the {key!r} of {column!r}"
            )
    settle_choices(found, rows)
    settle_references(found, rows)
    settle_question(found, rows)
    settle_marked(found, [c for c in columns if c not in used], rows)
    settle_wrong(found, wrong)
    settle_classes(found, rows)
    settle_id(found, rows)
    settle_absent(found, rows)
    for name in ("question", "references"):
        if name not in found.fields:
            found.lacks.append(name)
    told = str(list(found.fields.values()))
    found.unused = [c for c in columns if c not in used and repr(c) not in told]
    return found


def _nested_question(found: Guess, columns: list[str], rows: Sequence[Row]) -> bool:
    """Questions that are no text: a chat is taken, a list of questions is said."""
    if "question" in found.fields:
        return False
    known = {_plain(name) for name in _NAMES["question"]}
    listed = [c for c in columns if _plain(c) in known and several_questions(c, rows)]
    for column in listed[:1]:
        found.doubts.append(
            f"{column!r}, which holds several questions a row: `each` of the source in the recipe "
            "takes one after the other, as `routeyard sources show quac` does; then fields.question"
        )
    chat = turns_column(rows)
    if chat is not None and not listed and not {_plain(c) for c in columns} & known:
        found.say("question", chat, "a chat")
    return bool(listed)


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
            if name == "question" and plain.endswith("id"):
                continue  # `question_id`, of whatever length
            if known in plain and _fits(name, [row.get(column) for row in rows]):
                return column
    return None


def _fits(name: str, found: list[Any]) -> bool:
    """Whether the values can be what the name says."""
    there = [value for value in found if value not in (None, "", [])]
    if not there:
        return False
    if name == "question":
        if all(isinstance(v, dict) and isinstance(v.get("text"), str) for v in there):
            there = [v["text"] for v in there]
        # A row without its question cannot be asked.
        whole = len(there) == len(found) and all(isinstance(v, str) for v in there)
        return whole and _mean_length(there) >= 8
    if name == "id":
        # `Item` may hold what is asked.
        return all(len(str(v).split()) <= 3 for v in there)
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
        plain = _plain_keep(column)
        match = _ONE_OPTION.match(plain) or _ANY_OPTION.match(plain)
        if match and column not in used and not wrong_options([column]):
            start = _plain_keep(column)[: match.start(1)]
            found.setdefault(start, []).append((match[1], column))
    for start, run in found.items():
        if not _ONE_OPTION.match(start + "1") and len(run) < 3:
            continue
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
    # A row without its question cannot be asked.
    texts = [c for c in free if all(isinstance(row.get(c), str) and row[c] for row in rows)]
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
        graded = [c for c in answers if scores([row.get(c) for row in rows])]
        filled = [c for c in answers if all(row.get(c) not in (None, "") for row in rows)]
        filled = [c for c in filled if not _counts([row[c] for row in rows])]
        # Several columns of scores are those of models, whichever of them has no gap.
        if len(filled) == 1 and len(graded) < 2:
            found.say("references", reach(filled[0]), "the one column that is left and filled")


def _distinct(seen: list[Any]) -> bool:
    return all(value not in (None, "") for value in seen) and len({*map(str, seen)}) == len(seen)


def _counts(seen: list[Any]) -> bool:
    """Whether values only number the rows."""
    try:
        numbers = [int(str(value)) for value in seen]
    except ValueError:
        return False
    return all(b - a == 1 for a, b in pairwise(numbers))
