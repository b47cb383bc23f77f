"""The one number that a committed answer gives: a value, a calculation's result, a sentence's.

"a + b = c" gives c, "After 2 years she has $600" gives 600, and "84 sofas and 88
chairs", "6*sqrt(2)" or "x > 5" give none.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from routeyard.pipelines.scorers.comparison.number_context import part_of_more
from routeyard.pipelines.scorers.comparison.number_words import spoken
from routeyard.pipelines.scorers.comparison.quantity import Quantity, QuantityMatch, plain, scan
from routeyard.pipelines.scorers.patterns import patterns

_RE = patterns("number")


@lru_cache(maxsize=65536)
def numeric_answer(text: str) -> Quantity | None:
    """The one number a committed answer gives, None when there is not exactly one."""
    shown = plain(_chosen(text)).lstrip(" \t*_`:\"'").rstrip(" \t*_`$.,;:!\"'")
    numbers = scan(shown)
    if not numbers:
        said = spoken(shown)
        return Quantity(said[0]) if said else None
    if len(numbers) > 1:
        return _narrow(shown)
    only = numbers[0]
    return None if part_of_more(shown, only.start, only.end) else only.quantity


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
        only = numbers[0]
        return None if part_of_more(sentence, only.start, only.end) else only.quantity
    if "=" in sentence:
        tail = sentence.rpartition("=")[2]
        after = scan(tail)
        if after:
            return None if part_of_more(tail, after[0].start, after[0].end) else after[0].quantity
    if len({one.quantity for one in numbers}) == 1:
        if any(part_of_more(sentence, one.start, one.end) for one in numbers):
            return None  # 2\sqrt{2}
        return numbers[-1].quantity
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
