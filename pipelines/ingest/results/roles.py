"""Which column of a set of records says what: by its name, then by its values."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import yaml

from routeyard.pipelines.ingest.results.values import (
    FOREIGN,
    RATE,
    Column,
    amount,
    numbers,
    plain,
    scale_of,
    snake_case,
    some,
)

_TABLE: dict[str, dict[str, Any]] = yaml.safe_load(
    files(__package__).joinpath("roles.yaml").read_text(encoding="utf-8")
)
#: Role → names of its columns in other languages.
LANGUAGES: dict[str, list[str]] = {
    role: about["languages"] for role, about in _TABLE.items() if "languages" in about
}
for _role, _names in LANGUAGES.items():
    _TABLE[_role]["names"] += _names
#: What names of columns say of money.
_MONEYED = re.compile(
    r"(?:^|_)(?:\w*costs?|price[ds]?|spen[dt]|charged?|usd|dollars?|cents?|fees?|bill(?:ed|ing)?|"
    rf"expenses?|paid|payment|money|{'|'.join(LANGUAGES['cost'])})(?:_|$)"
)
#: Families that names of models hold.
FAMILY = re.compile(
    r"gpt|claude|gemini|gemma|llama|mi[sx]tral|qwen|deepseek|\bphi-?\d|command-?r|grok|falcon|"
    r"vicuna|zephyr|\byi-\d|olmo|\bnova\b|sonnet|opus|haiku|codex|davinci|pythia|bloom|glm|kimi|"
    r"minimax|nemotron|granite|jamba|wizard|solar|internlm|baichuan|starcoder|codestral|\bo[134]\b|"
    r"\bo[134]-(?:mini|preview|pro)|\d(?:\.\d)?b\b",
    re.IGNORECASE,
)
_SPLITS = {
    "train",
    "training",
    "validation",
    "valid",
    "val",
    "dev",
    "test",
    "testing",
    "ood",
    "eval",
}


#: Rank of a name that only ends as those of a role do, and of any figure under `metrics`.
ENDING, METRIC = 60.0, 45.0
_METRICS = ("metric", "metrics", "scores")
_SPREAD = re.compile(r"std|_ci|variance|^n$|_n$|count|num_|total", re.IGNORECASE)


def _other_figure(name: str) -> bool:
    """Whether a figure under `metrics` is no score, but a cost, tokens, a time or a number."""
    others = (*_OF_MODELS[2:], "sample", "attempt", "aggregate", "question")
    return _SPREAD.search(name.rpartition(".")[2]) is not None or any(
        rank_of(name, role) is not None for role in others
    )


def _labels(column: Column) -> bool:
    seen = some(column, 300)
    return bool(seen) and all(
        (isinstance(v, str | int) or (isinstance(v, float) and v.is_integer()))
        and len(str(v)) <= 200
        for v in seen
    )


def _ids(column: Column) -> bool:
    seen = some(column, 300)
    whole = all(not isinstance(v, float) or v.is_integer() for v in seen)
    return bool(seen) and whole and not any(isinstance(v, bool) for v in seen) and (
        len(column) - column.null_count >= 0.8 * len(column)
    ) and sum(len(str(v)) for v in seen) / len(seen) <= 200  # fmt: skip


def _repeated(column: Column) -> bool:
    seen = some(column, 2000)
    short = all(len(str(v)) <= 120 for v in seen)
    return bool(seen) and short and len({*map(str, seen)}) <= max(1, len(seen) // 2)


def _texts(column: Column) -> bool:
    return bool(seen := some(column, 100)) and all(isinstance(v, str) for v in seen)


def _numbers(column: Column) -> bool:
    found = numbers(column)
    return found is not None and not bool(np.isnan(found).all())


def _amounts(column: Column) -> bool:
    found = numbers(column, amount)
    return found is not None and not bool(np.isnan(found).all())


def _scores(column: Column) -> bool:
    found = numbers(column)
    return found is not None and scale_of(found, "rate") is not None


def _splits(column: Column) -> bool:
    return bool(seen := {str(v).lower() for v in some(column, 500)}) and seen <= _SPLITS


_TESTS: dict[str, Callable[[Column], bool]] = {
    "anything": lambda column: column.null_count < len(column),
    "labels": _labels,
    "ids": _ids,
    "repeated": _repeated,
    "texts": _texts,
    "amounts": _amounts,
    "numbers": _numbers,
    "scores": _scores,
    "splits": _splits,
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A column that may have a role; the smaller `rank`, the better its name."""

    column: str
    rank: float


def candidates(
    table: pa.Table, role: str, without: frozenset[str] = frozenset()
) -> list[Candidate]:
    """Columns whose names and values fit a role, the best name first."""
    about = _TABLE[role]
    test = _TESTS[about["values"]]
    ranked = [
        (rank, name)
        for name in table.column_names
        if name not in without
        and (not name.startswith("(") or name.startswith("(name)."))
        and (rank := rank_of(name, role)) is not None
    ]
    return [
        Candidate(name, rank)
        for rank, name in sorted(ranked)
        if test(table.column(name))
        and not (role == "text" and rank >= ENDING and _numbers(table.column(name)))
    ]


def _is_otherwise(name: str, parts: list[str], role: str) -> bool:
    """Whether a name fits a role by a word of it alone, and says that it is something else."""
    if role not in ("error", "status") and is_of_error(name):
        return True
    if role == "score":
        return is_negated(parts[-1])
    if role in _OF_MODELS and is_judges(name):
        return True
    if role in ("text", "prompt") and any(_METERED.search(snake_case(p)) for p in parts[:-1]):
        return True  # `token_count.prompt`, `cost.completion`
    if role in ("question", "suite", "prompt"):
        return "[0]" in name  # of a part of the record
    snake = snake_case(name)
    return role == "cost" and bool(RATE.search(snake) or FOREIGN.search(snake))


def is_of_error(name: str) -> bool:
    """Whether a column is a part of an error's object, as `error.type` is."""
    return any(plain(part) in _TABLE["error"]["names"] for part in name.split(".")[:-1])


def rank_of(name: str, role: str) -> float | None:
    """How well a column's name fits a role, the smaller the better; None where it does not."""
    about = _TABLE[role]
    parts = name.split(".")
    depth = len(parts) - 1 + 2 * name.startswith("(name).") + 3 * name.count("[0]")
    if _is_otherwise(name, parts, role):
        return None
    leaf = plain(re.sub(r"_(?:by|per)_\w+$", "", parts[-1]))
    leaves = {leaf, leaf.removesuffix("s")}
    joined = plain("".join(parts[-2:]))
    for place, known in enumerate(about["names"]):
        if known in leaves or (depth and joined == known):
            return place + 3.0 * depth
    if role == "score":
        if len(parts) > 1 and plain(parts[-2]) in _METRICS and not _other_figure(name):
            return METRIC + 3.0 * depth
        if leaf.startswith("score") and not _SPREAD.search(name):
            return ENDING + len(about["endings"]) + 3.0 * depth  # `score_match`, `score_f1`
    ends = about.get("endings", ())
    for place, known in enumerate(ends):
        if leaf.endswith(known):
            return ENDING + place + 3.0 * depth
    return None


#: What a part of a name says of figures below it.
_METERED = re.compile(r"token|usage|cost|pric|latenc|timing|count|length")
#: Roles of what the model did, and names of what a judge of its answers did.
_OF_MODELS = ("arm", "text", "cost", "prompt_tokens", "completion_tokens", "latency")
_JUDGES = re.compile(
    r"judge(?!d|ment)|grader|annotator|rater(?:$|_)|evaluator|(?:^|_)(?:evaluation|eval|grading|scoring)_?(?:cost|"
    r"tokens|time|latency|duration|model)(?:_|$)"
)


def is_judges(name: str) -> bool:
    """Whether a column is of a judge of answers, and not of the model that gave them."""
    parts = [snake_case(part) for part in name.split(".")]
    return any(_JUDGES.search(part) for part in parts) and plain(name) not in _JUDGED_ARM


#: What logs of evaluations call the model that is evaluated.
_JUDGED_ARM = ("evalmodel",)


#: Names of columns that say that an answer is wrong.
_NEGATED = re.compile(
    r"(?:is|was|are|num|n)?(?:incorrect|wrong|notcorrect|uncorrect|unresolved|unsolved|unsuccessful|"
    r"notresolved|notsolved|failed|isfailure|mistake)s?"
)


def looks_like_money(name: str) -> bool:
    """Whether a column's name speaks of costs, in any currency."""
    snake = snake_case(name)
    return _MONEYED.search(snake) is not None or FOREIGN.search(snake) is not None


def is_negated(name: str) -> bool:
    """Whether a column of this name says that an answer is wrong."""
    return _NEGATED.fullmatch(plain(name)) is not None


def is_weak(name: str, role: str = "text") -> bool:
    """Whether a column that may hold answers or scores may as well be a question's own."""
    return plain(name.rpartition(".")[2]) in _TABLE[role]["weak"]


def constant(column: Column) -> bool:
    """Whether a column says the same in every row that has a value."""
    return len(pc.unique(column.drop_null())) <= 1
