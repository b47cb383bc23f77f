"""Values of columns as numbers: scores of any scale or word, units of cost and time, statuses."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.pipelines.common.errors import SourceError
from routeyard.schemas.statuses import ANSWERLESS, status_of
from routeyard.schemas.text import own_table

Column: TypeAlias = "pa.Array | pa.ChunkedArray"
_TABLE, _SAID = (
    own_table(files(__package__).joinpath(name)) for name in ("roles.yaml", "words.yaml")
)


#: Roles that `--map` names; the others of the table are parts of a question or of an arm.
ROLES = [role for role in _TABLE if role not in ("attempt", "setting", "part", "aggregate")]


def vocabulary(name: str) -> tuple[str, ...]:
    """Words of that name in `words.yaml`."""
    return tuple(_SAID["words"][name])


@cache
def pattern(name: str, part: str = "patterns") -> re.Pattern[str]:
    """The pattern of that name in `words.yaml`."""
    return re.compile("".join(_SAID[part][name]))


#: Words of a score, without case, spaces and signs.
WORDS: dict[str, float] = {word: score for score, said in _SAID["scores"].items() for word in said}
ABSENT, CACHED = vocabulary("absent"), vocabulary("cached")
FIGURE_NAMES, FIGURE_VALUES = vocabulary("figure_names"), vocabulary("figure_values")
#: Patterns of names of lists of ids, and of figures of whole arms, by what they say.
LISTS, FIGURES = (
    {name: pattern(name, part) for name in _SAID[part]} for part in ("lists", "figures")
)
#: Letters of Inspect: correct, incorrect, partial, no answer. Read as words only beside each other.
_LETTERS = {"c": 1.0, "i": 0.0, "p": 0.5, "n": None}


@dataclass(frozen=True, slots=True)
class ReadingNote:
    """What was found, decided or left out while results were read.

    Attributes:
        kind: `question` asks a person to confirm a choice; `left_out` names what was not taken;
            `value` names rows whose values make no sense; `choice` states a choice; `status`
            counts runs that did not end as they should; `unread` names scores that were not
            understood; `repeated` counts answers that only some questions have twice; `figures`
            are stated figures that contradict one another or the rows; `unpriced` counts costs
            that are not known; `calls` are API calls of no question, `other_calls` those of no
            arm, `served` those that another model answered; `cached` are prompt tokens of a cache;
            `paths` are absolute paths of a machine; `columns` names columns that were not read;
            `map` says which column was taken for what.
        says: One sentence.
        rows: Rows it is about; 0 where it is about no row.
        at: Some of the places.
        about: Field, arm or file.
    """

    kind: Literal[
        "question", "left_out", "value", "choice", "status", "unread", "repeated", "figures",
        "rows", "unpriced", "calls", "other_calls", "served", "cached", "paths", "columns", "map",
    ]  # fmt: skip
    says: str
    rows: int = 0
    at: tuple[str, ...] = ()
    about: str = ""


#: Texts of notes, by kind.
_TEXTS = own_table(files(__package__).joinpath("notes.yaml"))
_REFUSED = _TEXTS.pop("refused")
#: Name of a note → its kind, what it is about, and its text.
_NOTES = {
    name: (kind, about, text)
    for kind, subjects in _TEXTS.items()
    for about, named in subjects.items()
    for name, text in named.items()
}


def refusal(name: str, where: object, /, **values: Any) -> SourceError:
    """The error of that name in `notes.yaml`, with values in its text."""
    what, step = (text.format(**values) for text in _REFUSED[name])
    return SourceError(what, where=str(where), next_step=step)


def told(
    note: str, rows: int = 0, about: str = "", at: tuple[str, ...] = (), /, **values: Any
) -> ReadingNote:
    """The note of that name in `notes.yaml`, with values in its text."""
    kind, subject, text = _NOTES[note]
    says = text.format(rows=rows, about=about, **values)
    return ReadingNote(kind, says, rows, at, about or subject)


def cached_notes(read: float, prompt: float, rows: int) -> list[ReadingNote]:
    """A note of the prompt tokens that came from a provider's cache; empty without any."""
    if read <= 0:
        return []
    return [told("cached", rows, read=read, prompt=prompt)]


#: Kinds of notes that a person should confirm.
ASKED = ("question", "unread", "repeated", "rows")


def plain(text: str) -> str:
    """A text without case, spaces and signs."""
    return re.sub(r"[\s_\-.:/()\[\]|,'\"@%$€£¥₹¢#?]+", "", text).lower()


def some(column: Column, most: int = 2000) -> list[Any]:
    """Values of a column without nulls, evenly from all of it."""
    there = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    # One by one: to take rows of a column in parts copies all of its texts.
    return [column[int(n)].as_py() for n in there[:: max(1, len(there) // most)]]


def without_marks(text: str) -> str:
    """A number in text without a dollar sign before it and commas for thousands."""
    short = text.strip().lstrip("$").strip()
    grouped = re.fullmatch(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", short)
    return short.replace(",", "") if grouped else short


def word(text: str) -> float | None:
    """Score of a word or of a number in text, with `%` as hundredths; NaN for any other text."""
    short = plain(text)
    if short in WORDS:
        return WORDS[short]
    if short in ABSENT or not short:
        return None
    if part := re.fullmatch(r"\s*(\d{1,6})\s*/\s*(\d{1,6})\s*", text):
        return int(part[1]) / int(part[2]) if int(part[2]) else None  # tests passed of all tests
    try:
        stripped = without_marks(text)
        number = float(stripped.removesuffix("%").strip())
        return number / 100 if stripped.endswith("%") else number
    except ValueError:
        return None if status_of(text) in ANSWERLESS else math.nan


#: Sign behind an amount → factor.
_SIGNS = {"k": 1e3, "K": 1e3, "M": 1e6, "s": 1.0, "ms": 1e-3, "¢": 1e-2, "": 1.0}


def amount(text: str) -> float | None:
    """A number of a text that may have a dollar sign, commas for thousands, `k`, `ms` or `¢`."""
    short = without_marks(text)
    if not short or short.lower() in ("nan", "none", "null", "n/a", "na", "-"):
        return None
    parts = re.fullmatch(r"([-+\d.,eE]+?)\s*(k|K|M|s|ms|¢|)", short)
    if parts is None:
        return math.nan
    try:
        return float(without_marks(parts[1])) * _SIGNS[parts[2]]
    except ValueError:
        return math.nan


def numbers(column: Column, read: Callable[[str], float | None] = word) -> np.ndarray | None:
    """Values as float64, NaN where missing; None where they are no numbers or words.

    Of texts at least 95 in 100 have to be numbers or words of a score.
    """
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
        if pa.types.is_temporal(kind):
            return None
        return np.array(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), float)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    sampled = some(column, 400)
    bad = sum(isinstance(v := read(item), float) and math.isnan(v) for item in sampled)
    if bad > 0.05 * len(sampled) and not _are_letters(sampled):
        return None
    # Each different text is read once. A column with more than a few that are neither number nor
    # word is no score.
    coded = column.dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    texts = coded.dictionary.to_pylist()
    letters = _are_letters(texts)
    values = [_LETTERS.get(plain(text)) if letters else read(text) for text in texts]
    wrong = sum(v is not None and math.isnan(v) for v in values)
    if wrong > max(3, 0.05 * len(values)):
        return None
    codes = coded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
    listed = np.array([*values, None], float)  # None is NaN
    return np.asarray(listed[codes.astype(np.int64)])


def _are_letters(texts: Sequence[str]) -> bool:
    seen = {plain(text) for text in texts if text}
    return seen <= {*_LETTERS} and bool(seen & {"c", "i"})


@dataclass(frozen=True, slots=True)
class ScoreScale:
    """How scores become 1 for right and 0 for wrong; not `sure` where a person has to look.

    Attributes:
        absent: Value that says that there is no score.
    """

    low: float
    high: float
    words: str
    sure: bool = True
    absent: float | None = None


def scale_of(values: np.ndarray, name: str) -> ScoreScale | None:
    """The scale of scores; None where the numbers cannot be scores."""
    there = values[~np.isnan(values)]
    if not len(there):
        return None
    low, high = float(there.min()), float(there.max())
    inside = float(np.mean((there >= 0) & (there <= 1)))
    if (high <= 1 and inside >= 0.9) or (high > 1 and _verdicts(there)):
        return ScoreScale(0, 1, "")  # some values outside are named, row by row
    if low == -1 and high == 1 and set(np.unique(there)) <= {-1.0, 0.0, 1.0}:
        return ScoreScale(-1, 1, "from -1 (wrong) to 1 (right)", sure=0.0 not in there)
    rest_of = there[there >= 0]
    seldom = 5 * len(rest_of) >= 4 * len(there) and len(np.unique(rest_of)) >= 3
    if low == -1 and high > 1 and seldom and not np.any((there < 0) & (there > -1)):
        # Of points and percents a few -1 are what a judge that failed leaves.
        rest = scale_of(rest_of, name)
        words = "" if rest is None else f"{rest.words}; -1 means that the score is missing"
        return rest and ScoreScale(rest.low, rest.high, words, sure=False, absent=-1.0)
    scale = _beyond_one(low, high, inside, name)
    if scale is None and high <= 1.5 and inside >= 0.9:
        return ScoreScale(0, 1, "")
    return scale


def _verdicts(values: np.ndarray) -> bool:
    """Whether nearly all of many scores are 0 and 1, both of them: a stray one is no scale."""
    within = values[(values >= 0) & (values <= 1)]
    return 20 <= len(values) <= len(within) / 0.95 and {*within} == {0.0, 1.0}


def _beyond_one(low: float, high: float, inside: float, name: str) -> ScoreScale | None:
    """The scale of preferences, percents and points; None where values are neither."""
    if plain(name).endswith(("preference", "pref")) and low >= 1 and high <= 2:
        return ScoreScale(
            1, 2, "from 1 (the other is preferred) to 2 (this is preferred)", sure=False
        )
    percent = bool(re.search(r"percent|pct|%|rate", name, re.IGNORECASE))
    if 1 < high <= 100 and low >= 0 and (percent or high > 10):
        return ScoreScale(0, 100, "percent", sure=percent or high == 100)
    if 1 < high <= 10 and low >= 0 and inside < 0.9:
        top = 5.0 if high <= 5 else 10.0
        return ScoreScale(0, top, f"points from 0 to {top:g}", sure=False)
    return None


#: What a column of money holds that is no USD of an answer → pattern of its name.
_OTHER_MONEY = {kind: pattern(kind) for kind in ("foreign", "rate", "unclear")}
#: Sign of money → word for it.
_COINS = {"€": " eur ", "£": " gbp ", "¥": " jpy ", "₹": " inr ", "¢": " cents ", "$": " usd "}


def is_right_or_wrong(column: Column) -> bool:
    """Whether a column's values are 0 and 1, or words for them."""
    values = numbers(column)
    return values is not None and not {*values[values == values]} - {0.0, 1.0}


def unknown_words(table: pa.Table, *, wrong: bool = False) -> dict[str, int]:
    """Word of a status that nobody knows → rows where it is beside an empty answer without a score.

    Without any text, no answer is known to be empty; a score says how its source counts one.

    Args:
        wrong: Beside empty answers of score 0 instead.
    """
    text = pc.utf8_trim_whitespace(table.column("text"))
    if text.null_count == len(text):
        return {}
    score = table.column("score")
    counts = pc.fill_null(pc.equal(score, 0), False) if wrong else score.is_null()
    blank = pc.and_(pc.equal(pc.fill_null(text, ""), ""), counts)
    counted = pc.value_counts(table.column("status").filter(blank).drop_null()).to_pylist()
    return {
        item["values"]: item["counts"]
        for item in counted
        if item["values"].strip() and status_of(item["values"]) is None
    }


def factor(name: str, field: str) -> float:
    """What a value of this column is multiplied by to be in seconds or USD."""
    snake = snake_case(name)
    units = _SAID["units"].get(field, {})
    return next((by for end, by in units.items() if re.search(end, snake)), 1.0)


def snake_case(name: str) -> str:
    """The last part of a column's name in lower case, its words joined by `_`.

    >>> snake_case("usage.latencyMs"), snake_case("Cost (cents)")
    ('latency_ms', 'cost_cents')
    """
    leaf = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.rpartition(".")[2]).lower()
    leaf = re.sub("[€£¥₹¢$]", lambda sign: _COINS[sign[0]], leaf)
    return re.sub(r"[\s()\[\]\-_:|]+", "_", leaf).strip("_")


def texts(column: Column) -> pa.ChunkedArray:
    """A column as texts; whole numbers without a decimal point."""
    if pa.types.is_floating(column.type):
        there = column.drop_null()
        if len(there) and pc.all(pc.equal(pc.floor(there), there)).as_py():
            column = column.cast(pa.int64(), safe=False)
    result = column.cast(pa.string())
    return result if isinstance(result, pa.ChunkedArray) else pa.chunked_array([result])


# Records and tables of a stranger as Arrow columns of plain types.

#: Columns of one table.
MAX_COLUMNS = 20_000


def table_of(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Records as a table; a column of several kinds holds texts."""
    names = list(dict.fromkeys(name for row in rows for name in row))[:MAX_COLUMNS]
    return pa.table({name: column_of([row.get(name) for row in rows]) for name in names})


def plainly_named(table: pa.Table) -> pa.Table:
    """The table without names in brackets, which are ours: `('m', 'score')` becomes `m.score`."""
    names: list[str] = []
    for name in table.column_names:
        parts = re.findall(r"'([^']*)'|\"([^\"]*)\"", name) if name.startswith("('") else []
        short = ".".join(a or b for a, b in parts if a or b) or name
        short = short.removeprefix("(").removesuffix(")") if short.startswith("(") else short
        names.append(short if short not in names and short else f"{short}_{len(names)}")
    return table if names == table.column_names else table.rename_columns(names)


def column_of(values: list[Any]) -> pa.Array:
    """Values as a column, as texts where they are of several kinds."""
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {bool} or kinds <= {int, float} or kinds <= {str}:
        try:
            return pa.array(values)
        except (pa.ArrowInvalid, OverflowError, pa.ArrowTypeError):
            pass
    return pa.array([_text(value) for value in values], pa.string())


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def same_types(parts: list[pa.Table]) -> list[pa.Table]:
    """The tables with columns of one type each: text where the types do not agree."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for part in parts:
        for item in part.schema:
            number = pa.types.is_integer(item.type) or pa.types.is_floating(item.type)
            if not pa.types.is_null(item.type):
                kinds[item.name].add("number" if number else str(item.type))
    mixed = {name for name, types in kinds.items() if len(types) > 1}
    results = []
    for part in parts:
        for name in mixed & set(part.column_names):
            at = part.column_names.index(name)
            values = part.column(name)
            if not pa.types.is_string(values.type):
                texts = pa.array([_text(v) for v in values.to_pylist()], pa.string())
                part = part.set_column(at, name, texts)
        results.append(part)
    return results


def one_spelling(table: pa.Table) -> pa.Table:
    """The table with columns that are spelled alike but for case and signs as one column.

    Only where no row has a value in two of them: `pass@1` of some files, `Pass@1` of others.
    """
    spelled: dict[str, list[str]] = {}
    for name in table.column_names:
        if not name.startswith("("):
            spelled.setdefault(plain(name), []).append(name)
    for names in spelled.values():
        columns = [table.column(name) for name in names]
        there = sum(len(column) - column.null_count for column in columns)
        if len(names) < 2 or len({column.type for column in columns}) > 1:
            continue
        merged = pc.coalesce(*columns)
        if len(merged) - merged.null_count == there:
            at = table.column_names.index(names[0])
            table = table.set_column(at, names[0], merged).drop_columns(names[1:])
    return table


#: Numbers with a comma before their decimals, or with commas for thousands.
_COMMA, _THOUSANDS = r"^ *[-−+]?\d+(,\d+)? *%?$", r"^ *[-−+]?[1-9]\d{0,2}(,\d{3})+ *%?$"


def point_for_comma(column: pa.Array) -> pa.Array:
    """Texts with a decimal comma as texts with a point, where all are such numbers.

    `1,250` alone is a thousand; beside `0,5`, or `1,25`, the comma precedes decimals.
    """
    there = pc.utf8_trim_whitespace(column.drop_null())
    there = there.filter(pc.not_equal(there, ""))
    comma = there.filter(pc.match_substring(there, ","))
    if not len(comma) or not pc.all(pc.match_substring_regex(there, _COMMA)).as_py():
        return column
    if pc.all(pc.match_substring_regex(comma, _THOUSANDS)).as_py():
        return column
    return pc.replace_substring(column, ",", ".")


def plain_columns(table: pa.Table) -> pa.Table:
    """A table without structs, dictionaries and lists: nested names are joined by dots."""
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    for at, item in enumerate(table.schema):
        if pa.types.is_dictionary(item.type):
            values = table.column(at).cast(item.type.value_type)
            if not pa.types.is_integer(values.type) and not pa.types.is_floating(values.type):
                values = values.cast(pa.string())
        elif pa.types.is_nested(item.type) or pa.types.is_binary(item.type):
            results = table.column(at).to_pylist()
            if not _are_numbers(results):
                results = [_single(value) for value in results]
            values = pa.chunked_array([column_of(results)])
        elif pa.types.is_temporal(item.type) or pa.types.is_large_string(item.type):
            values = table.column(at).cast(pa.string())
        else:
            continue
        table = table.set_column(at, item.name, values)
    return table


def _are_numbers(values: list[Any]) -> bool:
    """Whether values are lists of numbers, some of them of several: ids of tokens, not a number."""
    lists = [value for value in values if isinstance(value, list)]
    return any(len(part) > 1 and not isinstance(part[0], str | dict | list) for part in lists)


def _single(value: Any) -> Any:
    """A list of one plain value as that value."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value


# Which column of a set of records says what: by its name, then by its values.

#: Role → names of its columns in other languages.
LANGUAGES: dict[str, list[str]] = {
    role: about["languages"] for role, about in _TABLE.items() if "languages" in about
}
for _role, _names in LANGUAGES.items():
    _TABLE[_role]["names"] += _names
#: What names of columns say of money.
_MONEYED = re.compile(
    rf"(?:^|_)(?:{pattern('money').pattern}|{'|'.join(LANGUAGES['cost'])})(?:_|$)"
)
#: Families that names of models hold.
FAMILY = pattern("family")
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


def _numbers(column: Column, read: Callable[[str], float | None] = word) -> bool:
    result = numbers(column, read)
    return result is not None and not bool(np.isnan(result).all())


def _scores(column: Column) -> bool:
    result = numbers(column)
    return result is not None and scale_of(result, "rate") is not None


def _splits(column: Column) -> bool:
    seen = {str(v).lower() for v in some(column, 500)}
    return bool(seen) and seen <= {*vocabulary("splits")}


_TESTS: dict[str, Callable[[Column], bool]] = {
    "anything": lambda column: column.null_count < len(column),
    "labels": _labels,
    "ids": _ids,
    "repeated": _repeated,
    "texts": _texts,
    "amounts": partial(_numbers, read=amount),
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
    test = _TESTS[_TABLE[role]["values"]]
    named = [
        name for name in table.column_names
        if name not in without and (name[:1] != "(" or name.startswith("(name)."))
    ]  # fmt: skip
    ranked = [(rank, name) for name in named if (rank := rank_of(name, role)) is not None]
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
    return role == "cost" and other_money(name) is not None


def other_money(name: str) -> str | None:
    """What a column by its name holds in place of an answer's USD: `foreign` money, a `rate` or
    an `unclear` unit.
    """
    snake = snake_case(name)
    return next((kind for kind, named in _OTHER_MONEY.items() if named.search(snake)), None)


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
_JUDGES = pattern("judges")


def is_judges(name: str) -> bool:
    """Whether a column is of a judge of answers, and not of the model that gave them."""
    parts = [snake_case(part) for part in name.split(".")]
    return any(_JUDGES.search(part) for part in parts) and plain(name) not in _JUDGED_ARM


#: What logs of evaluations call the model that is evaluated.
_JUDGED_ARM = ("evalmodel",)


def looks_like_money(name: str) -> bool:
    """Whether a column's name speaks of costs, in any currency."""
    snake = snake_case(name)
    return _MONEYED.search(snake) is not None or _OTHER_MONEY["foreign"].search(snake) is not None


def is_negated(name: str) -> bool:
    """Whether a column of this name says that an answer is wrong."""
    return pattern("negated").fullmatch(plain(name)) is not None


def is_weak(name: str, role: str = "text") -> bool:
    """Whether a column that may hold answers or scores may as well be a question's own."""
    return plain(name.rpartition(".")[2]) in _TABLE[role]["weak"]


# Tables inside JSON: rows of data frames, columns as lists, maps and lists of named values.

#: Fewest rows of columns that are lists.
_ROWS = 10


def table_rows(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of a table as data frames are written; empty for other values.

    Names of columns beside a list of lists, or column → row number → value.
    """
    if rows := _below_header(value):
        return rows
    first = next(iter(value.values())) if of_objects(value) else {}
    numbered = len(first) >= 2 and list(first) == [str(n) for n in range(len(first))]
    if not numbered or any(part.keys() != first.keys() for part in value.values()):
        return []
    return [{name: part[n] for name, part in value.items()} for n in first]


def _below_header(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of a list of lists beside names of columns; empty for other values."""
    parts = {k: part for k, part in value.items() if isinstance(part, list)}
    names = next((parts[k] for k in ("columns", "header", "headers") if k in parts), [])
    cells = next((parts[k] for k in ("data", "rows", "values") if k in parts), [])
    named = cells and names and all(isinstance(name, str) for name in names)
    if named and all(isinstance(row, list) and len(row) == len(names) for row in cells):
        return [dict(zip(names, row, strict=True)) for row in cells]
    return []


def columns_of_lists(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of an object whose lists of one length are columns; empty for other objects.

    One of the lists has to be named as scores or answers are, or most of them as models are.
    """
    lists = {k: item for k, item in value.items() if isinstance(item, list) and item}
    rows = {len(part) for part in lists.values()}
    nested = any(isinstance(x, list | dict) for part in lists.values() for x in part[:_ROWS])
    if len(lists) < 2 or len(rows) > 1 or nested:
        return []
    of_models = 2 * sum(FAMILY.search(k) is not None for k in lists) >= len(lists)
    named = any(rank_of(k, r) is not None for k in lists for r in ("score", "text"))
    if not of_models and not (named and min(rows) >= _ROWS):
        return []
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def of_objects(value: Mapping[str, Any]) -> bool:
    """Whether each of several values is an object that holds something."""
    return len(value) >= 2 and all(isinstance(item, dict) and item for item in value.values())


def plain_map(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """Values of a map from keys to numbers, truths or words, or to lists of one of them."""
    if len(value) < 2:
        return None
    plain = {
        key: item[0] if isinstance(item, list) and len(item) == 1 else item
        for key, item in value.items()
    }
    kinds = {type(item) for item in plain.values()} - {type(None)}
    fits = kinds and (kinds <= {bool} or kinds <= {int, float} or kinds <= {str})
    return plain if fits else None


def plain_maps(value: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """(outer key, inner key, value) of a map of maps of numbers that have other keys each.

    Suite → question → right or wrong; empty for other maps.
    """
    inner = [plain_map(item) if isinstance(item, dict) else None for item in value.values()]
    if len(inner) < 2 or any(item is None or len(item) < _ROWS // 2 for item in inner):
        return []
    kinds = {type(v) for item in inner for v in (item or {}).values()} - {type(None)}
    every = [key for item in inner for key in item or ()]
    if not kinds <= {bool, int, float} or len(set(every)) < 0.5 * len(every):
        return []
    return [(a, b, v) for a, m in zip(value, inner, strict=True) for b, v in (m or {}).items()]


def named_values(value: Sequence[Any]) -> dict[str, Any]:
    """Name → value of a list of objects that name one plain value each; empty for other lists."""
    result: dict[str, Any] = {}
    for item in value if len(value) <= 50 else ():
        keys = {plain(key): key for key in item} if isinstance(item, dict) else {}
        name = next((item[keys[k]] for k in FIGURE_NAMES if k in keys), None)
        key = next((k for k in FIGURE_VALUES if k in keys), "")
        if not isinstance(name, str) or not key or name in result or len(name) > 60:
            return {}
        if (key == "score" and len(value) < 2) or isinstance(item[keys[key]], dict | list):
            return {}
        result[name] = item[keys[key]]
    return result
