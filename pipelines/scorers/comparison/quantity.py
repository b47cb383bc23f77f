"""One number as people write it → an exact value.

Digits with thousands separators, decimals, fractions, mixed numbers,
scientific notation, percentages, currencies, magnitude words. What fits no
convention has no value: `0,111` is neither 0.111 nor 111.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

#: More digits than this are compared as text: `int()` of them is quadratic and,
#: past 4,300, refused by Python.
MOST_DIGITS = 400
MOST_EXPONENT = 400


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact value; `percent` when a percent sign stood behind it.

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
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+")
_VULGAR = re.compile(r"([0-9]?)([¼-¾⅐-⅞])")
_SIGNS = str.maketrans(
    {
        "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "﹣": "-", "－": "-",
        "×": "*", "✕": "*", "·": "*", "⋅": "*", "∙": "*", "÷": "/", "⁄": "/", "∕": "/",
        "≈": "=", "≃": "=", "≅": "=", "\u2009": " ", "\u202f": " ", "\u00a0": " ",
        "’": "'", "“": '"', "”": '"', "，": ",", "。": ".", "：": ":", "％": "%",
    }
)  # fmt: skip
_OVERLINE = re.compile(
    r"(\d{0,12})\.(\d{0,12})(?:\\(?:overline|bar|dot)\s?\{(\d{1,12})\}|(?<=\.)\((\d{1,12})\)(?![\d(]))"
)
_SQUARE = re.compile(
    r"\\sqrt\s?\{\s?(\d{1,12})\s?\}|(?<![a-z\\])sqrt\s?\((\d{1,12})\)|√\s?(\d{1,12})"
)
_BRACED = r"\{\s{0,4}(-?[\d.,]{1,40})\s{0,4}\}"
_LATEX = [
    (
        re.compile(
            r"\\(?:text(?:bf|it|rm|sf|tt|normal|up)?|math(?:rm|bf|it|sf)|operatorname|mbox|bf|boldsymbol)"
            r"\s{0,2}\{([^{}]{0,400})\}"
        ),
        r" \1 ",
    ),
    (re.compile(r",\s{0,2}\\!\s{0,2}(?=\d)|\{,\}"), ","),  # 15,\!000 as the MATH set writes it
    (re.compile(r"(?<=\d)\s?\\!\s?(?=\d{3}(?!\d))"), ","),
    (re.compile(r"(?<=\d)\\[,;: ](?=\d{3}(?!\d))"), ","),
    (re.compile(r"\\[,;: !]|~|\\quad|\\qquad"), " "),
    (re.compile(r"\\(?:left|right|displaystyle|,)|\\\(|\\\)|\\\[|\\\]"), " "),
    (re.compile(r"\\(?:times|cdot|ast)(?![A-Za-z])"), "*"),
    (re.compile(r"\\div(?![A-Za-z])"), "/"),
    (re.compile(r"\\(?:approx|simeq|doteq)(?![A-Za-z])"), "="),
    (re.compile(r"\\(?:circ|degree)(?![A-Za-z])"), " degrees"),
    (re.compile(r"\\(?:pounds|euro)(?![A-Za-z])"), " "),
    (re.compile(r"\\[dtc]?frac\s{0,2}(\d)\s{0,2}(\d)(?!\d)"), r" (\1/\2) "),
    (re.compile(r"\\[dtc]?frac\s{0,2}" + _BRACED + r"\s{0,2}" + _BRACED), r" (\1/\2) "),
    (re.compile(r"\\[dtc]?frac\s{0,2}(\d)\s{0,2}" + _BRACED), r" (\1/\2) "),
    (re.compile(r"\\[dtc]?frac\s{0,2}" + _BRACED + r"\s{0,2}(\d)(?!\d)"), r" (\1/\2) "),
    (re.compile(r"\^\s{0,2}\{\s{0,2}([+-]?\d{1,6})\s{0,2}\}"), r"^\1"),
    (re.compile(r"\\([$%&#_])"), r"\1"),
]  # fmt: skip


# Numbers as programs write them: 0xFF is 255, not 0 times x.
_BASED = re.compile(
    r"(?<![\w.])0(?:[xX][0-9A-Fa-f]{1,32}|[bB][01]{1,64}|[oO][0-7]{1,32})(?![\w.]\w|\w)"
)


def plain(text: str) -> str:
    """The text with LaTeX, markdown and typographic signs put into plain characters.

    Superscripts and vulgar fractions are resolved before Unicode compatibility
    folding, which would read `10⁵` as 105 and `2½` as 21/2.
    """
    if not text.isascii():
        text = _SUPERSCRIPT.sub(lambda m: "^" + m[0].translate(_SUPERSCRIPTS), text)
        text = _VULGAR.sub(lambda m: f"{m[1]} {unicodedata.normalize('NFKC', m[2])}", text)
        text = unicodedata.normalize("NFKC", text.translate(_SIGNS)).translate(_SIGNS)
        text = "".join(
            str(unicodedata.decimal(c)) if not c.isascii() and c.isdecimal() else c for c in text
        )
    if _BASED.search(text):
        text = _BASED.sub(lambda m: str(int(m[0], 0)), text)
    if "sqrt" in text or "√" in text:
        text = _SQUARE.sub(_root, text)
    if "." in text and ("{" in text or "(" in text):
        text = _OVERLINE.sub(_repeating, text)
    if "\\" in text or "{" in text or "~" in text:
        for pattern, replacement in _LATEX:
            text = pattern.sub(replacement, text)
    return text.replace("**", " ") if not re.search(r"\d\*\*-?\d", text) else text


def _root(found: re.Match[str]) -> str:
    square = int(found[1] or found[2] or found[3])
    return f" ({math.isqrt(square)}) " if math.isqrt(square) ** 2 == square else found[0]


def _repeating(found: re.Match[str]) -> str:
    """0.1\\overline{6} as the fraction it is."""
    fixed, period = found[2], found[3] or found[4]
    below = (10 ** len(period) - 1) * 10 ** len(fixed)
    above = int((found[1] or "0") + fixed + period) - int((found[1] or "0") + fixed)
    return f" {above}/{below} "


# A run of digits and separators; what it means is decided by `_decimal`.
_RUN = re.compile(r"\d(?:[\d]|[.,'_](?=\d))*|\.\d+")
_RAISED = re.compile(r"[A-Za-z)]\s?\^\s?-?$")
_SPACED = re.compile(r"\d{1,3}(?: \d{3})+(?![\d.,]*\d)(?! ?/)(?:\.\d+)?")
_GROUPED = re.compile(r"\d{1,3}([,'_])\d{3}(?:\1\d{3})*(\.\d+)?")
_INDIAN = re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}(\.\d+)?")
_EUROPEAN = re.compile(r"\d{1,3}(?:\.\d{3})+,\d{1,2}|\d{1,3}(?:\.\d{3}){2,}")
# A comma that can only be the decimal one: no group has one, two or more than three digits.
_COMMA = re.compile(r"\d{1,15},(?:\d{1,2}|\d{4,15})|\d{4,15},\d{3}")
_PLAIN = re.compile(r"\d*\.?\d+")
_EXPONENT = re.compile(
    r"[eE]([-+]?\d{1,9})(?![A-Za-z\d])|\s{0,2}(?:\*|x|X)\s{0,2}10\s{0,2}\^\s{0,2}\(?([-+]?\d{1,9})\)?"
)
_POWER = re.compile(r"\s{0,2}\^\s{0,2}\(?(-?\d{1,4})\)?(?![\d/.])")
_MIXED = re.compile(r"\s{1,3}\(?(\d{1,9})\s{0,2}/\s{0,2}(\d{1,9})\)?(?![\d/])")
_OVER = re.compile(r"\s{0,2}/\s{0,2}(-?[\d.,]{1,60})(?<=\d)(?!\s{0,2}[/\d])")
_PERCENT = re.compile(r"\s{0,3}(?:%|per ?cent\b|percentage\b)", re.IGNORECASE)
_MAGNITUDE = re.compile(
    r"[ -]{0,3}(hundred|thousand|million|billion|trillion|lakh|crore|mn|bn)\b|([kKMB])\b(?!\w)",
    re.IGNORECASE,
)
_MAGNITUDES = {
    "hundred": 10**2, "thousand": 10**3, "k": 10**3, "lakh": 10**5, "million": 10**6,
    "mn": 10**6, "m": 10**6, "crore": 10**7, "billion": 10**9, "bn": 10**9, "b": 10**9,
    "trillion": 10**12,
}  # fmt: skip
_CURRENCY = re.compile(r"(?:US|CA|AU|NZ|HK|A|C)?[$€£¥₹₩]\s{0,2}$|(?:USD|EUR|GBP|INR|Rs\.?)\s{0,2}$")
_SIGN_WORD = re.compile(r"\b(?:minus|negative)\s{1,3}$", re.IGNORECASE)
_CLOCK = re.compile(
    r"\d{1,2}:\d{2}(?![\d:])(?:\s{0,2}([ap])\.?m\b)?|\d{1,2}\s{0,2}([ap])\.?m\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class QuantityMatch:
    """A number in a text: `text[start:end]` and its value; None when malformed."""

    start: int
    end: int
    quantity: Quantity | None
    currency: bool = False


def scan(text: str) -> list[QuantityMatch]:
    """Every number in the text (already made `plain`), in order."""
    found: list[QuantityMatch] = []
    position = 0
    while run := _RUN.search(text, position):
        if _RAISED.search(text, max(0, run.start() - 4), run.start()):
            position = run.end()  # the 2 of m^2 or x^2
            continue
        one = _read(text, run.start(), run.end(), floor=position)
        found.append(one)
        position = max(one.end, run.end())
    return found


def _with_power(
    text: str, end: int, digits: str, decimals: int | None
) -> tuple[Fraction | None, int | None, int]:
    """(value, decimals, end) with an exponent, a power or a fraction after the digits.

    The value is null where it has no bound or no meaning.
    """
    value = Fraction(digits)
    if exponent := _EXPONENT.match(text, end):
        power = int(exponent[1] or exponent[2])
        if abs(power) > MOST_EXPONENT:
            return None, None, exponent.end()
        return value * Fraction(10) ** power, None, exponent.end()
    if raised := _POWER.match(text, end):
        power = int(raised[1])
        if abs(power) > MOST_EXPONENT or len(digits) > 9 or (value == 0 > power):
            return None, None, raised.end()
        return value**power, None, raised.end()
    if decimals is None and (mixed := _MIXED.match(text, end)) and int(mixed[2]):
        return value + Fraction(int(mixed[1]), int(mixed[2])), None, mixed.end()
    if over := _OVER.match(text, end):
        below = _decimal(over[1].lstrip("-"))
        if below is None or len(below) > MOST_DIGITS or Fraction(below) == 0:
            return None, None, over.end()
        value /= Fraction(below) * (-1 if over[1].startswith("-") else 1)
        return value, None, over.end()
    return value, decimals, end


def _read(text: str, start: int, end: int, *, floor: int) -> QuantityMatch:
    if clock := _CLOCK.match(text, start):
        return QuantityMatch(start, clock.end(), _time(clock))
    if spaced := _SPACED.match(text, start):
        end = spaced.end()
        digits: str | None = spaced[0].replace(" ", "")
    else:
        digits = _decimal(text[start:end])
    comma = (
        digits is not None
        and text.find(",", start, end) >= 0
        and _COMMA.fullmatch(text, start, end) is not None
    )
    first, negative, currency = _sign(text, start, floor)
    if digits is None:
        return QuantityMatch(first, end, None, currency)
    decimals = len(digits.partition(".")[2]) if "." in digits else None
    if len(digits) > MOST_DIGITS:
        canonical = ("-" if negative else "") + _canonical(digits)
        return QuantityMatch(first, end, Quantity(canonical, decimals=decimals), currency)
    value, decimals, end = _with_power(text, end, digits, decimals)
    if value is None:
        return QuantityMatch(first, end, None, currency)
    if magnitude := _MAGNITUDE.match(text, end):
        word = (magnitude[1] or magnitude[2]).lower()
        if magnitude[1] or word == "k" or currency:
            value, decimals, end = value * _MAGNITUDES[word], None, magnitude.end()
    percent = _PERCENT.match(text, end)
    if percent:
        end = percent.end()
    quantity = Quantity(-value if negative else value, percent is not None, decimals, comma)
    return QuantityMatch(first, end, quantity, currency)


def _decimal(run: str) -> str | None:
    """Canonical digits of a run, None when its separators fit no convention."""
    if _PLAIN.fullmatch(run):
        return run
    # A leading zero never opens a thousands group: 0,111 is not 111.
    if run[0] != "0" and (_GROUPED.fullmatch(run) or _INDIAN.fullmatch(run)):
        return run.replace(",", "").replace("'", "").replace("_", "")
    if run[0] != "0" and _EUROPEAN.fullmatch(run):
        return run.replace(".", "").replace(",", ".")
    return run.replace(",", ".") if _COMMA.fullmatch(run) else None


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
        if money := _CURRENCY.search(before):
            before, currency = before[: money.start()], True
        elif trimmed.endswith("-") and not negative and _unary(trimmed, before):
            before, negative = trimmed[:-1], True
        elif word := _SIGN_WORD.search(before):
            before, negative = before[: word.start()], True
    if not (negative or currency):
        return start, False, False
    return max(floor, start - 12) + len(before), negative, currency


def _unary(trimmed: str, before: str) -> bool:
    """Whether the minus at the end of `trimmed` is a sign, not a subtraction, dash or hyphen."""
    left = trimmed[:-1]
    if not left:
        return True
    if left[-1].isalnum() or left[-1] in ")%":
        return False
    outer = left.rstrip()
    if not outer:
        return True
    if outer[-1].isdigit() or outer[-1] in ")%":
        return False
    return not outer[-1].isalpha() or trimmed == before.rstrip("(")


def _time(clock: re.Match[str]) -> Quantity:
    hours, _, minutes = re.match(r"(\d+)(:?)(\d*)", clock[0]).groups()  # type: ignore[union-attr]
    half = (clock[1] or clock[2] or "").lower()
    return Quantity(f"{int(hours)}:{minutes or '00'}{half}")
