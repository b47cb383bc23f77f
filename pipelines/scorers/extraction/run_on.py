"""Where an answer ends and a run-on generation begins.

A base model that was shown `Question: … Answer: …` examples goes on to invent
the next question and answers that too. The text after the marker is not an
answer to our question.
"""

from __future__ import annotations

import re
from functools import lru_cache

from routeyard.pipelines.scorers.extraction.envelopes import opening_of
from routeyard.pipelines.scorers.patterns import patterns

_RE = patterns("run_on")

WORDS = (
    "Question", "QUESTION", "Q", "Problem", "Exercise", "User", "Human", "Instruction",
    "问题", "题目",
)  # fmt: skip
# "Q" is in "Question" and "QUESTION": each text is searched as few times as can be.
_FIRST = tuple(word for word in WORDS if word == "Q" or not word.startswith("Q"))
_ASCII = tuple(word for word in _FIRST if word.isascii())
# Bounded repeats that cannot take each other's characters: linear time. One star with a space
# behind it is a bullet ("* Q: the flow rate"), an item of the answer's own.
NEXT = re.compile(
    r"\n[ \t]{0,8}(?!\* )[#*]{0,4} {0,2}(?:"
    + "|".join(WORDS)
    + r")(?: {0,2}#?\d{1,4})?[*]{0,2} {0,2}[:：]"
)


@lru_cache(maxsize=4)
def end_of_answer(text: str) -> int:
    """Index at which the answer to the first question ends (len(text) if it runs to the end).

    A marker before any content is the model repeating the question it was
    asked, and does not end the answer; nor does one that is announced.
    """
    end = len(text)
    if "<" in text or "[" in text:
        end = _first(_RE["tokens"], text, opening_of(text, end), end)
    colon = ":" in text or "：" in text
    if colon and any(map(text.__contains__, _ASCII if text.isascii() else _FIRST)):
        end = _first(NEXT, text, 0, end)
    return end


def _first(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    for found in pattern.finditer(text, start, end):
        before = text[start : found.start()]
        if numbered := _RE["numbered"].fullmatch(found[0]):
            first = before.lstrip(" \t\n*#")
            if first.startswith(f"{numbered[1]}{int(numbered[2]) - 1}"):
                continue  # "Q1: A", "Q2: B": a list
        if before.strip() and not (len(before) < 400 and _RE["announced"].search(before)):
            return found.start()
    return end
