"""The one number that a committed answer gives: a value, a calculation's result, a sentence's.

"a + b = c" gives c, "After 2 years she has $600" gives 600, and "84 sofas and 88
chairs", "6*sqrt(2)" or "x > 5" give none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from routeyard.pipelines.scorers.comparison.number_words import spoken
from routeyard.pipelines.scorers.comparison.quantity import Quantity, QuantityMatch, plain, scan
from routeyard.pipelines.scorers.patterns import patterns
from routeyard.pipelines.scorers.scorer import ScoringInput

_RE = patterns("number")


@lru_cache(maxsize=65536)
def numeric_answer(text: str) -> Quantity | None:
    """The one number a committed answer gives, None when there is not exactly one."""
    shown = plain(_chosen(text)).lstrip(" \t*_`:\"'").rstrip(" \t*_`$.,;:!\"'")
    numbers = scan(shown)
    if not numbers:
        said = spoken(shown)
        return Quantity(said[0]) if said else None
    return _narrow(shown) if len(numbers) > 1 else _whole(shown, numbers[0])


def part_of_more(text: str, one: QuantityMatch) -> bool:
    """Whether a number is a factor, a summand or a bound of something.

    `6*sqrt(2)` is not 6, `4i` not 4, `2 + sqrt(3)` not 2, `x > 5` not 5: a reader of
    numbers must refuse an answer whose number is only a piece. `text` is already `plain`.
    """
    left, end = text[max(0, one.start - 60) : one.start], one.end
    if _RE["right"].match(text, end, end + 32):
        return True
    if len(text) - end <= 6 and _RE["i"].match(text, end):
        return True
    return bool(_RE["left"].search(left)) and not _RE["tag"].search(left)


def _whole(text: str, one: QuantityMatch) -> Quantity | None:
    return None if part_of_more(text, one) else one.quantity


def _chosen(text: str) -> str:
    """What is left when the rejected number goes: "not 7 but 9", "7, not 9"; 21'0" is 21 feet."""
    if feet := _RE["feet"].fullmatch(text[:40]):
        return feet[1]
    if namely := _RE["namely"].search(text[:200]):
        text = text[namely.end() :]
    if "[" in text:
        text = _RE["cited"].sub("", text)
    if "not " not in text or len(text) > 200:
        return text
    return _RE["rejected_last"].sub("", _RE["rejected_first"].sub("", text))


def _narrow(text: str) -> Quantity | None:
    """The value an answer of several numbers comes to: `a + b = c`, "…, so she has c"."""
    sentence = _telling_sentence(text)
    if _RE["unfinished"].fullmatch(sentence.rpartition("=")[2]):
        return None  # "27+18", "= 3 * 4": not worked out, so no number is given
    bare = _RE["parenthesis"].sub(" ", sentence)
    if bare != sentence and "=" not in bare and scan(bare):
        sentence = bare
    numbers = scan(sentence)
    if len(numbers) == 1:
        return _whole(sentence, numbers[0])
    _, equals, tail = sentence.rpartition("=")
    if equals and (after := scan(tail)):
        return _whole(tail, after[0])
    if len({one.quantity for one in numbers}) == 1:
        partly = any(part_of_more(sentence, one) for one in numbers)  # 2\sqrt{2}
        return None if partly else numbers[-1].quantity
    leads = [lead.strip(" $") for _, lead in _with_lead(numbers, sentence)][1:]
    if any(lead in ("to", "or", "and", "-", "through") for lead in leads):
        return None  # a range, or alternatives
    for clause in _clauses(numbers, sentence):
        if len({one.quantity for one in clause}) == 1:
            return clause[0].quantity
    return None


def _clauses(
    numbers: list[QuantityMatch], sentence: str
) -> tuple[list[QuantityMatch], list[QuantityMatch]]:
    """Numbers of the main clause that nothing governs ("for 5 apples"), and all of them."""
    main: list[QuantityMatch] = []
    free: list[QuantityMatch] = []
    governed = False
    for one, lead in _with_lead(numbers, sentence):
        if not _RE["subordinate"].search(lead):
            # "for 5 apples and 5 oranges": what governs the first governs the second.
            governed = bool(_RE["governed"].search(lead)) or (
                governed and bool(_RE["also"].fullmatch(lead))
            )
            main.append(one)
            if not governed:
                free.append(one)
        elif main:
            break  # "…, when it cools by 65 and she adds 15": circumstances to the end
    return free, main


def in_main_clause(sentence: str) -> list[QuantityMatch]:
    """Numbers that no "since", "if" or "when" leads up to."""
    return [
        one
        for one, lead in _with_lead(scan(sentence), sentence)
        if not _RE["subordinate"].search(lead)
    ]


def _telling_sentence(text: str) -> str:
    """The last sentence that concludes, else the last that holds a number."""
    sentences = [one for one in _RE["sentence"].split(text) if scan(one)]
    concluding = [one for one in sentences if _RE["concludes"].search(one)]
    return (concluding or sentences)[-1]


def _with_lead(numbers: list[QuantityMatch], sentence: str) -> Iterator[tuple[QuantityMatch, str]]:
    """Each number with the words of its clause that lead up to it."""
    end = 0
    for one in numbers:
        yield one, sentence[end : one.start]
        end = one.end


@lru_cache(maxsize=65536)
def number(text: str) -> Quantity | None:
    """The text as one exact number; None when it holds anything but a number."""
    shown = plain(_RE["dollars"].sub("", text)).strip()
    if not _RE["number_only"].fullmatch(shown.strip("() ")):
        said = spoken(shown) if shown.isascii() and len(shown) < 60 else None
        return Quantity(said[0]) if said and said[1:] == (0, len(shown.rstrip("."))) else None
    found = scan(shown)
    one = found[0].quantity if len(found) == 1 else None
    return None if one is not None and one.comma else one


def numbers(text: str) -> list[Quantity]:
    """The number of what is counted ("100 barrels/year"), of a calculation, of "2/3 ≈ 0.667"."""
    if calculation := _RE["calculation"].match(text):
        text = text[calculation.end() :]
    counted = _RE["counted"].fullmatch(text)
    parts = [counted[1]] if counted else _RE["about"].split(text)
    return [one for part in parts if (one := number(part)) is not None]


def spoken_number(text: str, asked: ScoringInput | None) -> Quantity | None:
    """The number of an ordinal, an hour, or a quantity in a unit that the question names."""
    text, question = text.strip(" $."), asked.question if asked else ""
    if glued := _RE["glued"].fullmatch(text):
        named = re.search(rf"(?:\d\s?|\s){re.escape(glued[2])}\b", question)
        return number(glued[1]) if named and (len(glued[2]) > 1 or named[0][0].isdigit()) else None
    if _RE["hour"].fullmatch(text) and (text[-1] in "mM." or re.search(r"\d:\d\d", question)):
        return numeric_answer(text)
    return numeric_answer(text) if _RE["ordinal"].fullmatch(text) else None
