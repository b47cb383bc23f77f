"""Numbers written as English words: "twenty-one", "three and a half", "two thirds"."""

from __future__ import annotations

import re
from fractions import Fraction

_TEENS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_TY = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "third fourth fifth sixth seventh eighth ninth tenth"
UNITS = {word: value for value, word in enumerate(_TEENS.split())}
_TENS = {word: 10 * value for value, word in enumerate(_TY.split(), start=2)}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_ONES = UNITS | _TENS
_TIMES = {"hundred": 100, "dozen": 12}
_PARTS = {"half": 2, "halves": 2, "quarter": 4, "quarters": 4} | {
    name + plural: part
    for part, name in enumerate(_ORDINALS.split(), start=3)
    for plural in ("", "s")
}
_WORD = re.compile(r"[A-Za-z]+")


def spoken(text: str) -> tuple[Fraction, int, int] | None:
    """The first number spelled out in the text, with its span.

    "one" alone is mostly a pronoun, so it counts only when the text begins with it.
    """
    run: list[re.Match[str]] = []
    for word in _WORD.finditer(text[:400]):
        joined = not run or not text[run[-1].end() : word.start()].strip(" -")
        if _known(word[0].lower()) and joined:
            run.append(word)
        elif (value := _value(run)) is not None and _counts(run, text):
            return value, *_span(run)
        else:
            run = [word] if _known(word[0].lower()) else []
    value = _value(run)
    return (value, *_span(run)) if value is not None and _counts(run, text) else None


def _known(word: str) -> bool:
    return (
        word in _ONES or word in _TIMES or word in _SCALES or word in _PARTS
        or word in ("and", "a", "an", "minus", "negative", "of")
    )  # fmt: skip


def _trimmed(run: list[re.Match[str]]) -> list[re.Match[str]]:
    while run and run[-1][0].lower() in ("and", "a", "an", "of"):
        run = run[:-1]
    while run and run[0][0].lower() in ("and", "of"):
        run = run[1:]
    return run


def _span(run: list[re.Match[str]]) -> tuple[int, int]:
    run = _trimmed(run)
    return run[0].start(), run[-1].end()


def _counts(run: list[re.Match[str]], text: str) -> bool:
    run = _trimmed(run)
    if len(run) > 1:
        return True
    return run[0][0].lower() != "one" or not text[: run[0].start()].strip(" *_\"'$")


def _value(run: list[re.Match[str]]) -> Fraction | None:
    words = [word[0].lower() for word in _trimmed(run)]
    if not words:
        return None
    sign = 1
    if words[0] in ("minus", "negative"):
        sign, words = -1, words[1:]
    total, part = Fraction(0), Fraction(0)
    seen = False
    for index, word in enumerate(words):
        if word in ("and", "a", "an"):
            continue
        seen = True
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
            mixed = _mixed(words, index)
            return None if mixed is None else sign * mixed
        else:
            total, part = Fraction(0), (total + part) / _PARTS[word]
    return sign * (total + part) if seen else None


def _joins(words: list[str], index: int, part: Fraction) -> bool:
    """Whether a word goes on with the number before it.

    "one two" and "nineteen eighty" are two numbers, but "three and two thirds" is one.
    """
    then = words[index + 1] if index + 1 < len(words) else ""
    if words[index - 1] == "and" and then in _PARTS:
        return True
    small = _ONES[words[index]] < 10
    return part % 10 == 0 and part % 100 != 10 if small else part % 100 == 0


def _mixed(words: list[str], index: int) -> Fraction | None:
    """Value of words such as "three and two thirds", whose fraction is named at `index`."""
    cut = index - 1 - words[:index][::-1].index("and")
    whole, over = _plain_value(words[:cut]), _plain_value(words[cut + 1 : index])
    return None if whole is None or over is None else whole + over / _PARTS[words[index]]


def _plain_value(words: list[str]) -> Fraction | None:
    total = Fraction(0)
    for word in words:
        if word in _ONES:
            total += _ONES[word]
        elif word == "hundred":
            total = Fraction((total or 1) * 100)
        elif word in _SCALES:
            total *= _SCALES[word]
        elif word not in ("and", "a", "an"):
            return None
    return total
