"""Whether two quantities are one answer: exact, repeating, in percent, or within a tolerance."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from routeyard.pipelines.label.scorers.patterns import patterns, rewrites, table
from routeyard.pipelines.label.scorers.scorer import ScoringInput

# Numbers written as English words: "twenty-one", "three and a half", "two thirds".

_TABLE = table("number_words")
UNITS: dict[str, int] = _TABLE["units"]
_TIMES, _SCALES, _PARTS = _TABLE["times"], _TABLE["scales"], _TABLE["parts"]
_ONES = UNITS | _TABLE["tens"]
_NUMBER_WORDS_SIGNS = ("minus", "negative")
_LINKS = ("and", "a", "an")
#: A run of such words; it neither begins nor ends with "of" or "and".
_SAID = "|".join([*_ONES, *_TIMES, *_SCALES, *_PARTS, *_NUMBER_WORDS_SIGNS])
_RUN = re.compile(
    rf"(?<![a-z])(?:{_SAID}|an?)(?![a-z])"
    rf"(?:(?:[ -]+(?:{_SAID}|an?|and|of)(?![a-z]))*[ -]+(?:{_SAID})(?![a-z]))?",
    re.IGNORECASE,
)


def spoken(text: str) -> tuple[Fraction, int, int] | None:
    """The first number spelled out in the text, with its span.

    "one" alone is mostly a pronoun, so it counts only when the text begins with it.
    """
    for run in _RUN.finditer(text[:400]):
        words = re.split("[ -]+", run[0].lower())
        if words == ["one"] and text[: run.start()].strip(" *_\"'$"):
            continue
        negative = words[0] in _NUMBER_WORDS_SIGNS
        if (value := _value(words[negative:])) is not None:
            return -value if negative else value, *run.span()
    return None


def _value(words: list[str]) -> Fraction | None:
    """Value of a run of words; None where they are several numbers or none."""
    if not set(words).difference(_LINKS):
        return None
    total, part = Fraction(0), Fraction(0)
    for index, word in enumerate(words):
        if word in _LINKS:
            continue
        if word in _ONES:
            if not _joins(words, index, part):
                return None
            part += _ONES[word]
        elif word in _TIMES:
            part = Fraction((part or 1) * _TIMES[word])
        elif word in _SCALES:
            total, part = total + (part or 1) * _SCALES[word], Fraction(0)
        elif word not in _PARTS:
            return None
        elif index == 0 or words[index - 1] in ("a", "an"):
            part += Fraction(1, _PARTS[word])
        elif index > 1 and "and" in words[:index]:
            return _mixed(words, index)
        else:
            total, part = Fraction(0), (total + part) / _PARTS[word]
    return total + part


def _joins(words: list[str], index: int, part: Fraction) -> bool:
    """Whether a word goes on with the number before it.

    "one two" and "nineteen eighty" are two numbers, but "three and two thirds" is one.
    """
    if words[index - 1] == "and" and words[index + 1 : index + 2] and words[index + 1] in _PARTS:
        return True
    small = _ONES[words[index]] < 10
    return part % 10 == 0 and part % 100 != 10 if small else part % 100 == 0


def _mixed(words: list[str], index: int) -> Fraction | None:
    """Value of words such as "three and two thirds", whose fraction is named at `index`."""
    if not _PARTS.keys().isdisjoint(words[:index]):
        return None
    cut = index - 1 - words[:index][::-1].index("and")
    item = ["one"] if words[index] in ("half", "quarter") else []  # "two and half"
    whole, over = _value(words[:cut]), _value(words[cut + 1 : index] or item)
    return None if whole is None or over is None else whole + over / _PARTS[words[index]]


# One number as people write it → an exact value.
#
# Digits with thousands separators, decimals, fractions, mixed numbers,
# scientific notation, percentages, currencies, magnitude words. What fits no
# convention has no value: `0,111` is neither 0.111 nor 111.

_QUANTITY_RE = patterns("quantity")

#: More digits than this are compared as text: `int()` of them is quadratic and,
#: past 4,300, refused by Python.
MOST_DIGITS = 400
MOST_EXPONENT = 400


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact value; `percent` when a percent sign followed it.

    `value` is a Fraction, or canonical text for what cannot be one (numbers of
    thousands of digits, times of day). `decimals` counts the decimal places
    written, None when the number was not written as a decimal. `comma`: it was
    written with a decimal comma, which a list could be mistaken for.
    """

    value: Fraction | str
    percent: bool = False
    decimals: int | None = None
    comma: bool = False


_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_NUMBERS = table("numbers")
_QUANTITY_SIGNS = str.maketrans(_NUMBERS["signs"])
_LATEX = rewrites("latex_rewrites")


def plain(text: str) -> str:
    """The text with LaTeX, markdown and typographic signs put into plain characters.

    Superscripts and vulgar fractions are resolved before Unicode compatibility
    folding, which would read `10⁵` as 105 and `2½` as 21/2.
    """
    if not text.isascii():
        text = _QUANTITY_RE["superscript"].sub(lambda m: "^" + m[0].translate(_SUPERSCRIPTS), text)
        text = _QUANTITY_RE["vulgar"].sub(
            lambda m: f"{m[1]} {unicodedata.normalize('NFKC', m[2])}", text
        )
        text = unicodedata.normalize("NFKC", text.translate(_QUANTITY_SIGNS)).translate(
            _QUANTITY_SIGNS
        )
        text = "".join(
            str(unicodedata.decimal(c)) if not c.isascii() and c.isdecimal() else c for c in text
        )
    if _QUANTITY_RE["based"].search(text):
        text = _QUANTITY_RE["based"].sub(lambda m: str(int(m[0], 0)), text)
    if "sqrt" in text or "√" in text:
        text = _QUANTITY_RE["square"].sub(_root, text)
    if "." in text and ("{" in text or "(" in text):
        text = _QUANTITY_RE["overline"].sub(_repeating, text)
    if "\\" in text or "{" in text or "~" in text:
        for pattern, replacement in _LATEX:
            text = pattern.sub(replacement, text)
    return text.replace("**", " ") if not re.search(r"\d\*\*-?\d", text) else text


def _root(match: re.Match[str]) -> str:
    square = int(match[1] or match[2] or match[3])
    return f" ({math.isqrt(square)}) " if math.isqrt(square) ** 2 == square else match[0]


def _repeating(match: re.Match[str]) -> str:
    """0.1\\overline{6} as the fraction it is."""
    fixed, period = match[2], match[3] or match[4]
    below = (10 ** len(period) - 1) * 10 ** len(fixed)
    above = int((match[1] or "0") + fixed + period) - int((match[1] or "0") + fixed)
    return f" {above}/{below} "


_MAGNITUDES = {word: 10**power for word, power in _NUMBERS["magnitudes"].items()}


@dataclass(frozen=True, slots=True)
class QuantityMatch:
    """A number in a text: `text[start:end]` and its value; None when malformed."""

    start: int
    end: int
    quantity: Quantity | None
    currency: bool = False


def scan(text: str) -> list[QuantityMatch]:
    """Every number in the text (already made `plain`), in order."""
    matches: list[QuantityMatch] = []
    position = 0
    while run := _QUANTITY_RE["run"].search(text, position):
        if _QUANTITY_RE["raised"].search(text, max(0, run.start() - 4), run.start()):
            position = run.end()  # the 2 of m^2 or x^2
            continue
        item = _read(text, run.start(), run.end(), floor=position)
        matches.append(item)
        position = max(item.end, run.end())
    return matches


def _with_power(text: str, end: int, digits: str) -> tuple[Fraction | None, int]:
    """(value, end) with an exponent, a power or a fraction after the digits.

    The value is null where it has no bound or no meaning.
    """
    value = Fraction(digits)
    if exponent := _QUANTITY_RE["exponent"].match(text, end):
        power = int(exponent[1] or exponent[2])
        bounded = abs(power) <= MOST_EXPONENT
        return value * Fraction(10) ** power if bounded else None, exponent.end()
    if raised := _QUANTITY_RE["power"].match(text, end):
        power = int(raised[1])
        unclear = abs(power) > MOST_EXPONENT or len(digits) > 9 or value == 0 > power
        return None if unclear else value**power, raised.end()
    if "." not in digits and (mixed := _QUANTITY_RE["mixed"].match(text, end)) and int(mixed[2]):
        return value + Fraction(int(mixed[1]), int(mixed[2])), mixed.end()
    if over := _QUANTITY_RE["over"].match(text, end):
        below = _decimal(over[1].lstrip("-"))
        if below is None or len(below) > MOST_DIGITS or Fraction(below) == 0:
            return None, over.end()
        return value / Fraction(below) * (-1 if over[1].startswith("-") else 1), over.end()
    return value, end


def _read(text: str, start: int, end: int, *, floor: int) -> QuantityMatch:
    if clock := _QUANTITY_RE["clock"].match(text, start):
        return QuantityMatch(start, clock.end(), _time(clock))
    if spaced := _QUANTITY_RE["spaced"].match(text, start):
        end = spaced.end()
        digits: str | None = spaced[0].replace(" ", "").replace(",", ".")
    else:
        digits = _decimal(text[start:end])
    first, negative, currency = _sign(text, start, floor)
    if digits is None:
        return QuantityMatch(first, end, None, currency)
    comma = _QUANTITY_RE["comma"].fullmatch(text, start, end) is not None
    decimals = len(digits.partition(".")[2]) if "." in digits else None
    if len(digits) > MOST_DIGITS:
        canonical = ("-" if negative else "") + _canonical(digits)
        return QuantityMatch(first, end, Quantity(canonical, decimals=decimals), currency)
    value, stop = _with_power(text, end, digits)
    if value is None:
        return QuantityMatch(first, stop, None, currency)
    decimals = decimals if stop == end else None
    if magnitude := _QUANTITY_RE["magnitude"].match(text, stop):
        word = (magnitude[1] or magnitude[2]).lower()
        if magnitude[1] or word == "k" or currency:
            value, decimals, stop = value * _MAGNITUDES[word], None, magnitude.end()
    percent = _QUANTITY_RE["percent"].match(text, stop)
    quantity = Quantity(-value if negative else value, percent is not None, decimals, comma)
    return QuantityMatch(first, percent.end() if percent else stop, quantity, currency)


def _decimal(run: str) -> str | None:
    """Canonical digits of a run, None when its separators fit no convention."""
    if _QUANTITY_RE["plain"].fullmatch(run):
        return run
    # A leading zero never opens a thousands group: 0,111 is not 111.
    if run[0] != "0" and (
        _QUANTITY_RE["grouped"].fullmatch(run) or _QUANTITY_RE["indian"].fullmatch(run)
    ):
        return run.replace(",", "").replace("'", "").replace("_", "")
    if run[0] != "0" and _QUANTITY_RE["european"].fullmatch(run):
        return run.replace(".", "").replace(",", ".")
    return run.replace(",", ".") if _QUANTITY_RE["comma"].fullmatch(run) else None


def _canonical(digits: str) -> str:
    whole, _, part = digits.partition(".")
    part = part.rstrip("0")
    return (whole.lstrip("0") or "0") + ("." + part if part else "")


def _sign(text: str, start: int, floor: int) -> tuple[int, bool, bool]:
    """Start with sign and currency included, whether negative, whether a currency."""
    negative = currency = False
    before = text[max(floor, start - 12) : start]
    for _ in range(2):  # -$5 and $-5
        trimmed = before.rstrip("( ")
        if money := _QUANTITY_RE["currency"].search(before):
            before, currency = before[: money.start()], True
        elif trimmed.endswith("-") and not negative and _unary(trimmed, before):
            before, negative = trimmed[:-1], True
        elif word := _QUANTITY_RE["sign_word"].search(before):
            before, negative = before[: word.start()], True
    if not (negative or currency):
        return start, False, False
    return max(floor, start - 12) + len(before), negative, currency


def _unary(trimmed: str, before: str) -> bool:
    """Whether the minus at the end of `trimmed` is a sign, not a subtraction, dash or hyphen."""
    left = trimmed[:-1]
    if not left:
        return True
    if left[-1] > "\u3000":  # scripts without spaces: 是-3
        return left[-1].isalpha()
    if left[-1].isalnum() or left[-1] in ")%":
        return False
    outer = left.rstrip()
    if not outer:
        return True
    if outer[-1].isdigit() or outer[-1] in ")%":
        return False
    return not outer[-1].isalpha() or trimmed == before.rstrip("(")


def _time(clock: re.Match[str]) -> Quantity:
    hours, minutes = [*re.findall(r"\d+", clock[0]), "00"][:2]
    return Quantity(f"{int(hours)}:{minutes}{(clock[1] or clock[2] or '').lower()}")


# The one number that a committed answer gives: a value, a calculation's result, a sentence's.
#
# "a + b = c" gives c, "After 2 years she has $600" gives 600, and "84 sofas and 88
# chairs", "6*sqrt(2)" or "x > 5" give none.

_NUMBER_RE = patterns("number")


@lru_cache(maxsize=65536)
def numeric_answer(text: str) -> Quantity | None:
    """The one number a committed answer gives, None when there is not exactly one."""
    shown = plain(_chosen(text)).lstrip(" \t*_`:\"'").rstrip(" \t*_`$.,;:!\"'")
    numbers = scan(shown)
    if not numbers:
        said = spoken(shown)
        return Quantity(said[0]) if said else None
    return _narrow(shown) if len(numbers) > 1 else _number_whole(shown, numbers[0])


def part_of_more(text: str, match: QuantityMatch) -> bool:
    """Whether a number is a factor, a summand or a bound of something.

    `6*sqrt(2)` is not 6, `4i` not 4, `2 + sqrt(3)` not 2, `x > 5` not 5: a reader of
    numbers must refuse an answer whose number is only a piece. `text` is already `plain`.
    """
    left, end = text[max(0, match.start - 60) : match.start], match.end
    if _NUMBER_RE["right"].match(text, end, end + 32):
        return True
    if len(text) - end <= 6 and _NUMBER_RE["i"].match(text, end):
        return True
    return bool(_NUMBER_RE["left"].search(left)) and not _NUMBER_RE["tag"].search(left)


def _number_whole(text: str, match: QuantityMatch) -> Quantity | None:
    return None if part_of_more(text, match) else match.quantity


def _chosen(text: str) -> str:
    """What is left when the rejected number goes: "not 7 but 9", "7, not 9"; 21'0" is 21 feet."""
    if feet := _NUMBER_RE["feet"].fullmatch(text[:40]):
        return feet[1]
    if namely := _NUMBER_RE["namely"].search(text[:200]):
        text = text[namely.end() :]
    if "[" in text:
        text = _NUMBER_RE["cited"].sub("", text)
    if "not " not in text or len(text) > 200:
        return text
    return _NUMBER_RE["rejected_last"].sub("", _NUMBER_RE["rejected_first"].sub("", text))


def _narrow(text: str) -> Quantity | None:
    """The value an answer of several numbers comes to: `a + b = c`, "…, so she has c"."""
    sentence = _telling_sentence(text)
    if _NUMBER_RE["unfinished"].fullmatch(sentence.rpartition("=")[2]):
        return None  # "27+18", "= 3 * 4": not worked out, so no number is given
    bare = _NUMBER_RE["parenthesis"].sub(" ", sentence)
    if bare != sentence and "=" not in bare and scan(bare):
        sentence = bare
    numbers = scan(sentence)
    if len(numbers) == 1:
        return _number_whole(sentence, numbers[0])
    _, equals, tail = sentence.rpartition("=")
    if equals and (after := scan(tail)):
        return _number_whole(tail, after[0])
    if len({item.quantity for item in numbers}) == 1:
        partly = any(part_of_more(sentence, item) for item in numbers)  # 2\sqrt{2}
        return None if partly else numbers[-1].quantity
    leads = [lead.strip(" $") for _, lead in _with_lead(numbers, sentence)][1:]
    if any(lead in ("to", "or", "and", "-", "through") for lead in leads):
        return None  # a range, or alternatives
    for clause in _clauses(numbers, sentence):
        if len({item.quantity for item in clause}) == 1:
            return clause[0].quantity
    return None


def _clauses(
    numbers: list[QuantityMatch], sentence: str
) -> tuple[list[QuantityMatch], list[QuantityMatch]]:
    """Numbers of the main clause that nothing governs ("for 5 apples"), and all of them."""
    main: list[QuantityMatch] = []
    free: list[QuantityMatch] = []
    governed = False
    for item, lead in _with_lead(numbers, sentence):
        if not _NUMBER_RE["subordinate"].search(lead):
            # "for 5 apples and 5 oranges": what governs the first governs the second.
            governed = bool(_NUMBER_RE["governed"].search(lead)) or (
                governed and bool(_NUMBER_RE["also"].fullmatch(lead))
            )
            main.append(item)
            if not governed:
                free.append(item)
        elif main:
            break  # "…, when it cools by 65 and she adds 15": circumstances to the end
    return free, main


def in_main_clause(sentence: str) -> list[QuantityMatch]:
    """Numbers that no "since", "if" or "when" leads up to."""
    return [
        item
        for item, lead in _with_lead(scan(sentence), sentence)
        if not _NUMBER_RE["subordinate"].search(lead)
    ]


def _telling_sentence(text: str) -> str:
    """The last sentence that concludes, else the last that holds a number."""
    sentences = [part for part in _NUMBER_RE["sentence"].split(text) if scan(part)]
    concluding = [sentence for sentence in sentences if _NUMBER_RE["concludes"].search(sentence)]
    return (concluding or sentences)[-1]


def _with_lead(numbers: list[QuantityMatch], sentence: str) -> Iterator[tuple[QuantityMatch, str]]:
    """Each number with the words of its clause that lead up to it."""
    end = 0
    for item in numbers:
        yield item, sentence[end : item.start]
        end = item.end


@lru_cache(maxsize=65536)
def number(text: str) -> Quantity | None:
    """The text as one exact number; None when it holds anything but a number."""
    shown = plain(_NUMBER_RE["dollars"].sub("", text)).strip()
    if not _NUMBER_RE["number_only"].fullmatch(shown.strip("() ")):
        said = spoken(shown) if shown.isascii() and len(shown) < 60 else None
        return Quantity(said[0]) if said and said[1:] == (0, len(shown.rstrip("."))) else None
    result = scan(shown)
    quantity = result[0].quantity if len(result) == 1 else None
    return None if quantity is not None and quantity.comma else quantity


def numbers(text: str) -> list[Quantity]:
    """The number of what is counted ("100 barrels/year"), of a calculation, of "2/3 ≈ 0.667"."""
    if calculation := _NUMBER_RE["calculation"].match(text):
        text = text[calculation.end() :]
    counted = _NUMBER_RE["counted"].fullmatch(text)
    parts = [counted[1]] if counted else _NUMBER_RE["about"].split(text)
    return [item for part in parts if (item := number(part)) is not None]


def spoken_number(text: str, asked: ScoringInput | None) -> Quantity | None:
    """The number of an ordinal, an hour, or a quantity in a unit that the question names."""
    text, question = text.strip(" $."), asked.question if asked else ""
    if glued := _NUMBER_RE["glued"].fullmatch(text):
        named = re.search(rf"(?:\d\s?|\s){re.escape(glued[2])}\b", question)
        return number(glued[1]) if named and (len(glued[2]) > 1 or named[0][0].isdigit()) else None
    if _NUMBER_RE["hour"].fullmatch(text) and (
        text[-1] in "mM." or re.search(r"\d:\d\d", question)
    ):
        return numeric_answer(text)
    return numeric_answer(text) if _NUMBER_RE["ordinal"].fullmatch(text) else None


_TIME = re.compile(r"(\d{1,2})(?::(\d\d))?([ap]?)")


def agree(got: Quantity, reference: Quantity, asked: ScoringInput | None = None) -> bool:
    """Whether two quantities are the same answer; symmetric in the first two.

    Percent against a bare number follows the source's policy, `metadata["percent"]`:
    `value` (50 % is 0.5), `points` (50 % is 50), or, where the source states none,
    `either`: the value always, the points where the question asks for a percentage
    or the number exceeds 1.
    """
    question = asked.question.lower() if asked else ""
    metadata = asked.metadata if asked else {}
    if isinstance(got.value, str) or isinstance(reference.value, str):
        return _same_text(got.value, reference.value)
    pairs = [(got.value, reference.value)]
    if got.percent != reference.percent:
        in_percent = "percent" in question or "%" in question
        bare = reference.value if got.percent else got.value
        signed = got.value if got.percent else reference.value
        policy = metadata.get("percent", "either")
        pairs = [] if policy == "points" else [(signed / 100, bare)]
        if policy == "points" or (policy == "either" and (in_percent or abs(signed) > 1)):
            pairs.append((signed, bare))
    return any(_equal(a, b, got, reference, metadata) for a, b in pairs)


def rounds_to(got: Quantity, reference: Quantity) -> bool:
    """Whether a number is a decimal reference when it is rounded to the reference's places."""
    a, b, places = got.value, reference.value, reference.decimals
    if isinstance(a, str) or isinstance(b, str) or got.percent != reference.percent:
        return False
    if _one_float(a, b):  # 499.99999999999994 for the whole number 500
        return True
    if not places:
        return False
    return b.denominator > 1 and abs(a - b) * 10**places * 2 <= 1 and 20 * abs(a - b) <= abs(b)


def _same_text(fraction: Fraction | str, other: Fraction | str) -> bool:
    """Times and very long numbers; a time on the hour is that hour ("2:00 pm" answers "2")."""
    if str(fraction) == str(other):
        return True
    first, second = (_TIME.fullmatch(str(value)) for value in (fraction, other))
    if not first or not second or not (first[2] or second[2]):
        return False
    halves = {first[3], second[3]} - {""}
    return first[1] == second[1] and (first[2] or "00") == (second[2] or "00") and len(halves) < 2


def _equal(
    a: Fraction, b: Fraction, got: Quantity, reference: Quantity, metadata: Mapping[str, object]
) -> bool:
    if a == b or (_one_float(a, b) and a.denominator > 1 < b.denominator):
        return True
    for key, size in (("tolerance", abs(b)), ("absolute_tolerance", 1)):
        allowed = metadata.get(key)
        if isinstance(allowed, int | float) and abs(a - b) <= Fraction(str(allowed)) * size:
            return True
    return _rounded(a, b, got.decimals) or _rounded(b, a, reference.decimals)


def _rounded(decimal: Fraction, exact: Fraction, places: int | None) -> bool:
    """Whether `decimal`, written with `places`, is a longer number rounded or cut off.

    The longer number repeats, or has two and more places than the decimal's two and more: as
    1.1176 beside 1.12, a result beside its rounding.
    """
    if places is None or not (_repeats(exact) or (places > 1 and exact * 10 ** (places + 1) % 1)):
        return False
    step = Fraction(1, 10**places)
    if len(str(abs(int(decimal / step)))) < 3:
        return False
    return abs(decimal - exact) <= step / 2 or 0 <= abs(exact) - abs(decimal) < step


def _one_float(a: Fraction, b: Fraction) -> bool:
    """Whether two values differ in the last digits of a float: 0.6666666666666666 and ...67."""
    if not 0 < abs(a - b) * 2**50 <= max(abs(a), abs(b)):
        return False
    return any(15 <= _digits(item) <= 17 and item.denominator > 1 for item in (a, b))


def _digits(value: Fraction) -> int:
    """Significant digits of a decimal; 0 of one that never ends."""
    if _repeats(value):
        return 0
    whole = abs(value.numerator) * 10 ** value.denominator.bit_length() // value.denominator
    return len(str(whole).strip("0"))


def _repeats(value: Fraction) -> bool:
    """Whether its decimals never end: the denominator divides no power of ten."""
    return pow(10, value.denominator.bit_length(), value.denominator) != 0


# Units next to numbers, and whether two quantities are the same.
#
# The text is read here, with a closed list of the names that answers use: a letter
# behind a number is mostly a variable, and a unit library knows a unit for nearly
# every letter ("a" is a year, "c" the speed of light). pint defines the
# units and their conversion. Each currency is a separate dimension:
# cents are dollars, euros are not.

# ruff: noqa: E501 - the tables and patterns read better in one line


_UNITS_RE = patterns("units")

#: What answers call a unit → pint's name.
_NAMES = table("units")
_KNOWN = {name: name for name in _NAMES["known"].split()}
_KNOWN |= {name: unit for unit, names in _NAMES["also"].items() for name in names.split()}
#: Pint knows no money.
_MONEY = ("dollar = [money_us]", "cent = dollar / 100", "euro = [money_eu]", "sterling = [money_uk]",
          "yen = [money_jp]", "rupee = [money_in]")  # fmt: skip
#: Relative difference of a conversion that no whole number makes (feet to metres), as rounded.
_ROUNDED = Fraction(1, 2000)

Unit = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """A sum of quantities with units ("5 ft 6 in"), each (value, unit as factors and powers)."""

    parts: tuple[tuple[Quantity, Unit], ...]

    def same_as(self, other: Measure) -> bool:
        """Whether two measures are the same quantity; symmetric."""
        if [unit for _, unit in self.parts] == [unit for _, unit in other.parts]:
            both = zip(self.parts, other.parts, strict=True)
            return all(agree(mine[0], theirs[0]) for mine, theirs in both)
        item, same = _base(self), _base(other)
        if item is None or same is None or item[0] != same[0]:
            return False
        near = _ROUNDED * max(abs(item[1]), abs(same[1]))
        return item[1] == same[1] or (
            abs(item[1] - same[1]) <= near and not _units_whole(self, other)
        )


def measured(text: str) -> Measure | None:
    """A text that is a number and its unit, or several ("2 h 30 min"); else None."""
    if len(text) > 120:
        return None
    # "$5$ m" holds a formula, "$5" and "\\$5" are amounts of money.
    shown = _UNITS_RE["over"].sub(
        lambda over: "/" + re.sub(r"[\s·*-]+(?=[A-Za-z])", "-", over["units"].strip()),
        plain(_UNITS_RE["formula"].sub(r"\1", text)),
    )
    parts: list[tuple[Quantity, Unit]] = []
    end = 0
    for number in scan(shown):
        gap = shown[end : number.start]
        if number.start < end:
            continue  # the exponent of a unit
        if number.quantity is None or (parts and not _UNITS_RE["join"].fullmatch(gap)):
            return None
        if not parts and _UNITS_RE["words"].search(gap) and not _UNITS_RE["named"].fullmatch(gap):
            return None
        result = _unit_at(shown, number)
        if result is None:
            return None
        unit, end = result
        parts.append((number.quantity, unit))
    if not parts or not _UNITS_RE["end"].fullmatch(shown, end):
        return None
    return Measure(tuple(parts))


def measure_at(text: str, got: Quantity) -> Measure | None:
    """The measure that begins with the number `got` in a sentence; None without a unit."""
    shown = plain(text[:2000])
    for number in scan(shown):
        if number.quantity == got:
            unit = _unit_at(shown, number)
            if unit is not None:
                return Measure(((got, unit[0]),))
    return None


def _unit_at(text: str, number: QuantityMatch) -> tuple[Unit, int] | None:
    """Unit around a number and where it ends; the currency before it, else what follows it."""
    # `scan` takes a currency sign into the number.
    digit = re.search(r"[\d.]", text[number.start :])
    digits = number.start + (digit.start() if digit else 0)
    money = _UNITS_RE["before"].search(text, max(0, digits - 12), digits)
    factors = Counter([_KNOWN[money[1].lower()]] if money else [])
    end, over = number.end, 1
    while len(factors) < 4:
        start = end
        if factors:
            joint = _UNITS_RE["next"].match(text, end)
            if joint is None:
                break
            start, over = joint.end(), -1 if joint["over"] else over
        factor = _UNITS_RE["factor"].match(text, start)
        unit = _known(factor["word"], joined=bool(factors)) if factor else None
        if factor is None or unit is None:
            break
        if factor["word"] == "in" and not _UNITS_RE["end"].fullmatch(text, factor.end()):
            break  # "5 in total"
        power = {"s": 2, "c": 3}.get((factor["power"] or "-")[0].lower(), 1)
        factors[unit] += over * int(factor["exponent"] or factor["glued"] or power)
        end = factor.end()
    return (tuple(sorted(factors.items())), end) if factors else None


#: In "W/m^2-C" a letter that is a variable elsewhere; a difference, as one of kelvins.
_DEGREES = {"C": "kelvin", "F": "delta_degree_Fahrenheit"}


def _known(word: str, *, joined: bool = False) -> str | None:
    if joined and word in _DEGREES:
        return _DEGREES[word]
    word = re.sub(r"^deg(?:rees?)?\s?|\s", lambda m: "°" if m[0].strip() else "", word)
    if len(word) == 1 and word not in "mgshlLJWNVK$€£¥₹¢Ω":
        return None
    low = word.lower()
    return _KNOWN.get(low) or (_KNOWN.get(low[:-1]) if low.endswith("s") and len(low) > 3 else None)


@lru_cache(maxsize=1)
def _registry() -> Any:
    import pint

    registry: Any = pint.UnitRegistry(cache_folder=None, non_int_type=Fraction)
    for definition in _MONEY:
        registry.define(definition)
    return registry


@lru_cache(maxsize=4096)
def _base(measure: Measure) -> tuple[str, Fraction] | None:
    """(dimension, value in base units) of a measure; None when its parts do not add up."""
    registry = _registry()
    numbers = [(n.value, unit) for n, unit in measure.parts if isinstance(n.value, Fraction)]
    if len(numbers) < len(measure.parts):
        return None
    try:
        based = [
            registry.Quantity(value, registry.UnitsContainer(dict(unit))).to_base_units()
            for value, unit in numbers
        ]
        total = sum(based[1:], based[0])
    except Exception:  # pint's errors share no base worth naming; the unit is then unreadable
        return None
    dimension = str(sorted((str(k), str(v)) for k, v in total.dimensionality.items()))
    return dimension, Fraction(total.magnitude)


def _units_whole(measure: Measure, other: Measure) -> bool:
    """Whether one unit is a whole multiple of the other: nothing is rounded between them."""
    sizes = [_base(Measure(((Quantity(Fraction(1)), m.parts[0][1]),))) for m in (measure, other)]
    if not all(size and size[1] for size in sizes):
        return True
    ratio = sizes[0][1] / sizes[1][1]  # type: ignore[index]
    return 1 in (ratio.numerator, ratio.denominator)
