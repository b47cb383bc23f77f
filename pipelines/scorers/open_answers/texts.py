"""Answers and references of open questions in the forms in which they are compared."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from routeyard.pipelines.scorers.extraction.languages import worded
from routeyard.pipelines.scorers.open_answers.dates import Date, dates, is_month
from routeyard.pipelines.scorers.open_answers.words import (
    TITLES,
    VERDICTS,
    Word,
    fold,
    form_of,
    squashed,
    words,
)
from routeyard.pipelines.scorers.patterns import table


def _folded(word: str) -> str:
    """A word as a folded text has it; "si" is "sí" there, which affirms, and "an" "än"."""
    form = fold(word).casefold()
    ambiguous = form != word.casefold() and (form in VERDICTS or len(form) < 3)
    return "(?!)" if ambiguous else form


#: What surrounds a reference; <not> and its like are the words of all languages, folded.
RE = worded("contains", _folded)
RE.pieces["doubts"] = table("clauses")["doubts"]


class Text(NamedTuple):
    """A text in the forms in which it is compared; `words` are those with content."""

    folded: str
    words: tuple[Word, ...]
    forms: tuple[str, ...]
    dates: tuple[tuple[Date, int, int], ...]
    letters: str


def text_of(raw: str, *, titles: bool = True) -> Text:
    folded = fold(raw)
    kept = words(folded)
    if not titles:
        kept = tuple(word for word in kept if word.form not in TITLES) or kept
    found = tuple(word.form for word in kept)
    return Text(folded, kept, found, tuple(dates(kept)), squashed(folded))


@lru_cache(maxsize=8192)
def accepted(reference: str) -> tuple[Text, ...]:
    """A reference, the same without and within its brackets, and the parts between its `or`s."""
    parts = [reference, *RE["or"].split(reference)]
    parts += [RE["bracketed"].sub(" ", reference), *RE["bracketed"].findall(reference)]
    parts += RE["placed"].findall(reference)
    found = (text_of(part, titles=False) for part in dict.fromkeys(parts))
    return tuple(one for one in found if one.folded.strip())


@lru_cache(maxsize=8192)
def lettered(reference: str) -> frozenset[tuple[str, str]]:
    """A folded reference's words with the single letter beside them that tells names apart."""
    return frozenset(pair for one in RE["lettered"].finditer(reference) for pair in _pairs(one[0]))


def has_letters(reference: Text, answer: Text) -> bool:
    """Whether an answer has the letters of a reference: "d-block" is no "s-block"."""
    wanted = lettered(reference.folded)
    return not wanted or wanted <= _pairs(answer.folded)


def _pairs(folded: str) -> set[tuple[str, str]]:
    return set(pairwise(map(form_of, re.findall(r"\w+", folded))))


def is_date(text: Text) -> bool:
    """Whether a text is a date and nothing else."""
    return bool(text.dates) and all(form.isdigit() or is_month(form) for form in text.forms)
