"""Words of short free text in a form in which equal answers have equal words.

Folded are: case, accents, articles and other words without content, plurals, number words,
ordinals and Roman numerals, thousands separators, footnote digits after a word or an amount.
Scripts without spaces (Han, kana, hangul, Thai, …) are read sign by sign; katakana in runs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from routeyard.pipelines.scorers.patterns import table

_MARKS = "".join(
    chr(code) for code in range(0x300, 0xAC00) if unicodedata.category(chr(code))[0] == "M"
)
_SIGNS = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u309f\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
)
_WORD = re.compile(
    f"[\u30a0-\u30ff]+|(?<![^\\W_])[A-Z]{{1,3}}\\d{{1,3}}[A-Z]?(?![^\\W_])|[{_SIGNS}]|\\d{{3}}0s\\b|(?<![\\w)\\]}}])[-−]?\\d+(?:[.,:]\\d+)*|\\d+(?:[.,:]\\d+)*"
    f"|(?:(?![{_SIGNS}\u30a0-\u30ff])[^\\W\\d_][{_MARKS}]*)"
    f"(?:['’]?(?![{_SIGNS}\u30a0-\u30ff])[^\\W\\d_][{_MARKS}]*)*"
)
#: 75,0001: an amount, and the footnote that follows it.
_GROUPED = re.compile(r"(-?\d{1,3}(?:,\d{3})+(?:\.\d+)?)\d{0,2}")
#: 1.9 and 1,9: other signs make no amount that can be multiplied.
_DECIMAL = re.compile(r"-?\d+(?:[.,]\d+)?")
#: Where a space was lost: onSeptember.
_GLUED = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
#: "l'Angleterre", "Ankara'dır"
_ELIDED = re.compile(r"^(?:[ldjmnstc]|qu|dell|nell|all|dall|sull|un)'(?=\w{2})")
_ENDING = re.compile(r"(?<=\w{3})'(?!s$)\w{1,5}$")
_LATIN = re.compile("([A-Za-zͰ-ϿЀ-ӿ])[\u0300-\u036f]+")
_LETTERS = str.maketrans({"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ı": "i"})
WORDS = table("open_words")
_SAME = [(re.compile(rf"\b(?:{row})(?![\w-])"), row.split("|")[-1]) for row in WORDS["same"]]
#: Words that answer a question alone → whether they affirm.
VERDICTS = {word: yes for yes in (True, False) for word in WORDS[yes].split()}
_TENS = frozenset(str(10 * n) for n in range(2, 10))


class Word(NamedTuple):
    """A word with content: its folded form, its place, and whether it is written as a name."""

    form: str
    start: int
    end: int
    name: bool


def fold(text: str) -> str:
    """The text in lower-case compatible forms, without the accents of alphabets that drop them."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_LETTERS)
        text = _LATIN.sub(r"\1", unicodedata.normalize("NFKD", text))
        text = unicodedata.normalize("NFC", text)
    for pattern, one in _SAME:
        text = pattern.sub(one, text)
    return text


def _folded(rows: Iterable[str]) -> frozenset[str]:
    return frozenset(fold(" ".join(rows)).casefold().split())


EMPTY = _folded(WORDS["empty"])
TITLES = _folded(WORDS["titles"])
_NUMBERS = {word: str(value) for word, value in WORDS["numbers"].items()}


@lru_cache(maxsize=8192)
def words(text: str) -> tuple[Word, ...]:
    """The words with content, of a text that went through `fold`."""
    found: list[Word] = []
    for match in _WORD.finditer(text):
        raw = match[0]
        form = form_of(raw)
        if not form or form in EMPTY:
            continue
        before = found[-1] if found else None
        if before and form in WORDS["scales"] and _DECIMAL.fullmatch(before.form):
            value = float(before.form.replace(",", ".")) * WORDS["scales"][form]
            found[-1] = before._replace(form=f"{value:.15g}", end=match.end())
        elif (
            before and before.form in _TENS and len(form) == 1 and form.isdigit() and raw.isalpha()
        ):
            found[-1] = before._replace(form=str(int(before.form) + int(form)), end=match.end())
        else:
            found.append(Word(form, match.start(), match.end(), raw[0].isupper()))
    return tuple(found)


def form_of(raw: str) -> str:
    """A word of a folded text as it is compared."""
    word = raw.casefold().replace("’", "'")
    word = word.replace("−", "-")
    if is_number(word):
        word = word.removesuffix(":00")
        grouped = _GROUPED.fullmatch(word)
        return grouped[1].replace(",", "") if grouped else word
    if "'" in word:
        word = _ELIDED.sub("", word)
        # Ankara'da: an ending behind a name
        word = (raw[0].isupper() and _ENDING.sub("", word)) or word
    word = word.removesuffix("'s").replace("'", "")
    return _NUMBERS.get(word) or _singular(word)


def _singular(word: str) -> str:
    """The word without the ending of an English plural (Harman 1991, the S stemmer)."""
    if len(word) > 4 and word.endswith("ies") and word[-4] not in "ae":
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith("es") and word[-3] in "sxzh":
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] not in "su" else word


def forms(text: str) -> list[str]:
    """The folded words with content."""
    return [word.form for word in words(fold(text))]


def squashed(text: str) -> str:
    """Letters and digits alone: what is left where spaces were lost."""
    return "".join(filter(str.isalnum, fold(text).casefold()))


def is_number(form: str) -> bool:
    """Whether a word is written with digits."""
    return form.lstrip("-")[:1].isdigit()


def unglued(folded: str) -> str:
    """The text with the spaces that were lost before a capital: onSeptember."""
    return _GLUED.sub(" ", folded)
