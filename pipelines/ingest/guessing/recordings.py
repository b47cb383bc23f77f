"""Tables of answers: one row per answer, or one column of scores per model; told by their columns.

A table of answers taken for one of questions makes a benchmark of nothing, so it is told apart
before a recipe is written, and its columns are named as `collect.recorded` wants them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.ingest.guessing.values import Guess, Row, reach

#: Names of a column of models; compared without case and signs.
_MODEL = frozenset(
    {"model", "modelname", "modelid", "modelkey", "modelslug", "llm", "llmname", "llmid", "modell"}
)
#: field of a recording → names that columns have for it, the most telling first.
_NAMES: dict[str, tuple[str, ...]] = {
    "text": (
        "output", "response", "completion", "generation", "answertext", "modeloutput", "rawoutput",
        "modelresponse", "llmresponse", "generatedtext", "answer", "text", "content", "prediction",
        "antwort", "reply",
    ),
    "score": ("score", "correct", "iscorrect", "accuracy", "acc", "grade", "passed", "reward"),
    "prompt": ("prompt", "asked", "sentprompt", "fullprompt"),
    "sample": ("sample", "sampleid", "sampleindex", "trial", "repeat"),
    "prompt_tokens": (
        "prompttokens", "inputtokens", "intok", "tokensin", "numinputtokens", "intokens",
        "tokensinput", "prompttok", "inputtok",
    ),
    "completion_tokens": (
        "completiontokens", "outputtokens", "outtok", "tokensout", "numoutputtokens", "outtokens",
        "tokensoutput", "completiontok", "outputtok",
    ),
    "cost_usd": ("costusd", "usd", "cost", "totalcost", "pricepaid$", "pricepaid", "cost$"),
    "latency_s": ("latencys", "latency", "latencyseconds", "seconds", "durations"),
    "finish_reason": ("finishreason", "stopreason"),
    "served_model": ("servedmodel",),
}  # fmt: skip
_QUERY = (
    "queryid", "questionid", "qid", "promptid", "taskid", "exampleid", "itemid", "docid", "item",
    "id", "uid", "uuid", "idx", "index", "key", "query", "question", "prompt",
)  # fmt: skip
#: What stands before or after the model's name in a column of scores.
_SCORE = r"(?:is[ _-]?)?(?:scores?|acc(?:uracy)?|correct|grades?|quality|performance|labels?|eval)"
_BEFORE = re.compile(rf"^{_SCORE}[\s:_|/.\-]+(?=\S)", re.IGNORECASE)
_AFTER = re.compile(rf"(?<=\S)[\s:_|/.\-]+{_SCORE}$", re.IGNORECASE)
#: Families and sizes that names of models hold.
_FAMILY = re.compile(
    r"gpt|claude|gemini|gemma|llama|mi[sx]tral|qwen|deepseek|phi-?\d|command-?r|grok|falcon|"
    r"vicuna|zephyr|yi-\d|olmo|nova|\d(?:\.\d)?b\b",
    re.IGNORECASE,
)


def model_column(rows: Sequence[Row]) -> str | None:
    """The column that names the model of each row."""
    names = dict.fromkeys(str(name) for row in rows for name in row)
    return next((name for name in names if _plain(name) in _MODEL), None)


def answers_of(rows: Sequence[Row]) -> dict[str, str] | None:
    """Field of a recording → mapping, for a table with one row per answer; None for another.

    `query` is the column whose values come again with another model, or the one with the name
    of an id.
    """
    model = model_column(rows)
    if model is None:
        return None
    columns = list(dict.fromkeys(str(name) for row in rows for name in row))
    found = {"model": reach(model)}
    by_plain = {_plain(column): column for column in reversed(columns) if column != model}
    query = next((by_plain[name] for name in _QUERY if name in by_plain), None)
    if query is not None:
        found["query"] = reach(query)
    for name, known in _NAMES.items():
        column = next((by_plain[one] for one in known if one in by_plain), None)
        if column is None or reach(column) in found.values():
            continue
        seen = [row.get(column) for row in rows]
        if name == "score" and not all(_is_score(v) for v in seen if v not in (None, "")):
            continue
        found[name] = reach(column)
    return found if {"text", "score"} & found.keys() else None


def holds_answers(rows: Sequence[Row], asked: Sequence[Any] | None) -> bool:
    """Whether rows are answers of models, not questions.

    Rows that name a model are answers where none of their columns holds questions, or where the
    same question comes again.

    Args:
        asked: What each row asks; None where no column is named as questions are.
    """
    if answers_of(rows) is None:
        return False
    return asked is None or len({*map(str, asked)}) < len(asked)


def score_columns(rows: Sequence[Row], guess: Guess) -> dict[str, str]:
    """Model → its column, for a table with one row per question and one score per model.

    Two columns at least, each of numbers in [0, 1] or true and false. Where the table has
    references too, the columns have to be named as models or scores are.
    """
    told = repr(list(guess.fields.values()))
    names = dict.fromkeys(str(name) for row in rows for name in row)
    columns = [
        name
        for name in names
        if ("references" not in guess.fields or repr(name) not in told)
        and guess.fields.get("question") != name
        and guess.fields.get("id") != name
        and "{{" not in name
        and scores([row.get(name) for row in rows])
    ]
    if len(columns) < 2:
        return {}
    named = [bool(_BEFORE.match(name) or _AFTER.search(name)) for name in columns]
    if any(named):
        columns = [name for name, one in zip(columns, named, strict=True) if one]
    if "references" in guess.fields and guess.fields["references"] not in columns:
        telling = all(named) or sum(bool(_FAMILY.search(c)) for c in columns) * 2 >= len(columns)
        if not telling:
            return {}
    for sign in (_BEFORE, _AFTER):
        if all(sign.search(name) for name in columns):
            cut = {sign.sub("", name).strip(): name for name in columns}
            return cut if len(cut) == len(columns) > 1 else {name: name for name in columns}
    return {name: name for name in columns} if len(columns) > 1 else {}


def as_flow(fields: Mapping[str, str]) -> str:
    """A mapping on one line, as a recipe holds it."""
    import yaml

    text = yaml.safe_dump(dict(fields), default_flow_style=True, sort_keys=False, width=10_000)
    return str(text.strip())


def scores(seen: Sequence[Any]) -> bool:
    """Whether values are numbers in [0, 1] or true and false, with gaps in at most half of them."""
    there = [value for value in seen if value not in (None, "")]
    return bool(there) and 2 * len(there) >= len(seen) and all(_is_score(v) for v in there)


def _is_score(value: Any) -> bool:
    if isinstance(value, bool) or str(value).strip().lower() in ("true", "false"):
        return True
    try:
        number = float(value)
    except (TypeError, ValueError):
        return False
    return math.isnan(number) or 0 <= number <= 1


def _plain(name: str) -> str:
    return re.sub(r"[\s_\-.:/()\[\]]+", "", name).lower()
