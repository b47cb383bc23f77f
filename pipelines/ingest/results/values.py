"""Values of columns as numbers: scores of any scale or word, units of cost and time, statuses."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routeyard.schemas.statuses import ANSWERLESS, status_of

Column: TypeAlias = "pa.Array | pa.ChunkedArray"
#: Words of a score, without case, spaces and signs.
WORDS = {
    **dict.fromkeys(("true", "yes", "y", "t", "pass", "passed", "correct", "right", "success",
                     "succeeded", "successful", "resolved", "solved", "win", "won", "accepted",
                     "ac", "ok", "thumbsup", "✓", "✔", "full"), 1.0),
    **dict.fromkeys(("false", "no", "n", "f", "fail", "failed", "failure", "incorrect", "wrong",
                     "unsuccessful", "unresolved", "unsolved", "lose", "lost", "loss", "rejected",
                     "wa", "wronganswer", "thumbsdown", "notcorrect", "notattempted", "abstained",
                     "notresolved", "✗", "✘", "x"), 0.0),
    **dict.fromkeys(("partial", "partiallycorrect", "partialcredit", "tie", "draw", "half"), 0.5),
}  # fmt: skip
#: Words of a score that say why there is no right answer, and words of a comparison.
ABSTAINED = ("notattempted", "abstained")
COMPARED = ("win", "won", "lose", "lost", "loss", "tie", "draw")
#: Names of what names a figure, and of what holds it, in tables and objects with one figure each.
FIGURE_NAMES = ("metric", "metricname", "measure", "variable", "scorename", "name", "key", "field",
                "scorer")  # fmt: skip
FIGURE_VALUES = ("value", "val", "metricvalue", "score", "result")
#: Names of columns of cached prompt tokens, which the prompt tokens hold.
CACHED = ("cachedtokens", "cachereadtokens", "inputtokenscacheread", "cachereadinputtokens")
#: Letters of Inspect: correct, incorrect, partial, no answer. Read as words only beside each other.
_LETTERS = {"c": 1.0, "i": 0.0, "p": 0.5, "n": None}
#: Words that say that there is no score.
ABSENT = frozenset({
    "nan", "none", "null", "na", "nil", "error", "timeout", "timedout", "skipped", "pending",
    "unknown", "ungraded", "notgraded", "notrun", "cancelled", "canceled", "refused", "missing",
    "incomplete", "invalid", "infra",
})  # fmt: skip


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
            `paths` are absolute paths of a machine; `columns` names columns that were not read.
        says: One sentence.
        rows: Rows it is about; 0 where it is about no row.
        at: Some of the places.
        about: Field, arm or file.
    """

    kind: Literal[
        "question", "left_out", "value", "choice", "status", "unread", "repeated", "figures",
        "unpriced", "calls", "other_calls", "served", "cached", "paths", "columns",
    ]  # fmt: skip
    says: str
    rows: int = 0
    at: tuple[str, ...] = ()
    about: str = ""


def cached_notes(read: float, prompt: float, rows: int) -> list[ReadingNote]:
    """A note of the prompt tokens that came from a provider's cache; empty without any."""
    if read <= 0:
        return []
    says = (
        f"{read:,.0f} of {prompt:,.0f} prompt tokens of {rows:,} answers were read from a cache: "
        "at the price of other prompt tokens they cost too much"
    )
    return [ReadingNote("cached", says, rows, (), "prompt_tokens")]


#: Kinds of notes that a person should confirm.
ASKED = ("question", "unread", "repeated")


def plain(text: str) -> str:
    """A text without case, spaces and signs."""
    return re.sub(r"[\s_\-.:/()\[\]|,'\"@%$€£¥₹¢#?]+", "", text).lower()


def some(column: Column, most: int = 2000) -> list[Any]:
    """Values of a column without nulls, evenly from all of it."""
    if pa.types.is_null(column.type):
        return []
    there = column.drop_null()
    step = max(1, len(there) // most)
    values: list[Any] = there.take(pa.array(range(0, len(there), step), pa.int64())).to_pylist()
    return values


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
    if pa.types.is_boolean(kind):
        return _floats(column.cast(pa.float64()))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _floats(column.cast(pa.float64(), safe=False))
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    sampled = some(column, 400)
    bad = sum(isinstance(v := read(one), float) and math.isnan(v) for one in sampled)
    if sampled and bad > 0.05 * len(sampled) and not _are_letters(sampled):
        return None
    return _numbers_of_texts(column, read)


def _numbers_of_texts(column: Column, read: Callable[[str], float | None]) -> np.ndarray | None:
    """Each different text read once; None where more than a few are no number or word."""
    coded = column.dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    texts = coded.dictionary.to_pylist()
    if _are_letters(texts):
        values = [_LETTERS.get(plain(one)) for one in texts]
    else:
        values = [read(one) for one in texts]
    wrong = sum(v is not None and math.isnan(v) for v in values)
    if wrong > max(3, 0.05 * len(values)):
        return None
    table = np.array([np.nan if v is None else v for v in values] + [np.nan], float)
    codes = coded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
    found: np.ndarray = table[codes.astype(np.int64)]
    return found


def _floats(column: Column) -> np.ndarray:
    found: np.ndarray = column.to_numpy(zero_copy_only=False) if isinstance(
        column, pa.Array) else column.to_numpy()  # fmt: skip
    return np.array(found, dtype=float)


def _are_letters(texts: Sequence[str]) -> bool:
    seen = {plain(one) for one in texts if one}
    return bool(seen) and seen <= set(_LETTERS) and "c" in seen | {"c"} and bool(seen & {"c", "i"})


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
    if high <= 1 and inside >= 0.9:
        return ScoreScale(0, 1, "")
    if low == -1 and high == 1 and set(np.unique(there)) <= {-1.0, 0.0, 1.0}:
        return ScoreScale(-1, 1, "from -1 (wrong) to 1 (right)", sure=0.0 not in there)
    rest_of = there[there >= 0]
    seldom = 5 * len(rest_of) >= 4 * len(there) and len(np.unique(rest_of)) >= 3
    if low == -1 and high > 1 and seldom and not np.any((there < 0) & (there > -1)):
        # Of points and percents a few -1 are what a judge that failed leaves.
        rest = scale_of(rest_of, name)
        words = "" if rest is None else f"{rest.words}; -1 means that the score is missing"
        return rest and ScoreScale(rest.low, rest.high, words, sure=False, absent=-1.0)
    found = _beyond_one(low, high, inside, name)
    if found is None and high <= 1.5 and inside >= 0.9:
        return ScoreScale(0, 1, "")  # some values outside are named, row by row
    return found


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


#: End of a name → factor to seconds or USD.
_TIME = ((r"(?:_|\b|time|latency|duration)(?:ms|msecs?|millis|milliseconds?)$", 1e-3),
         (r"(?:_us|_micros|microseconds?)$", 1e-6), (r"(?:_ns|nanoseconds?)$", 1e-9),
         (r"(?:_min|_mins|minutes?)$", 60.0), (r"(?:_h|_hrs?|hours?)$", 3600.0))  # fmt: skip
_MONEY = ((r"micro_?cents?", 1e-8), (r"micro_?(?:dollars?|usd)?", 1e-6),
          (r"milli_?(?:dollars?|usd)", 1e-3), (r"(?:^|_)(?:cents?|ct)(?:$|_)", 1e-2),
          (r"nano", 1e-9))  # fmt: skip
#: A price, which is not what an answer cost, and money that is no US dollar.
RATE = re.compile(
    r"(?:per|/)_?(?:\d+_?)?(?:k|m|mm|mtok|ktok|million|thousand|tok|tokens?|hour|h|min|minute|sec|"
    r"second)(?:_|$)|(?:per|/)_?(?:\d+_?[km]?|k|m|thousand|million)_",
)
FOREIGN = re.compile(
    r"(?:^|_)(?:eur|euros?|gbp|pounds?|cny|rmb|yuan|jpy|yen|inr|rupees?|chf|francs?|aud|cad|sgd|"
    r"krw|brl|sek|nok|dkk|pln)(?:_|$)"
)
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
        one["values"]: one["counts"]
        for one in counted
        if one["values"].strip() and status_of(one["values"]) is None
    }


def factor(name: str, field: str) -> float:
    """What a value of this column is multiplied by to be in seconds or USD."""
    snake = snake_case(name)
    table = _TIME if field == "latency" else _MONEY if field == "cost" else ()
    return next((by for pattern, by in table if re.search(pattern, snake)), 1.0)


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
    found = column.cast(pa.string())
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])
