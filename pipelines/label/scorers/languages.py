"""How an answer is stated in each language: expressions made of `patterns/languages.yaml`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import filterfalse
from typing import Any

from routeyard.pipelines.label.scorers.patterns import Patterns, hints, joined, table

# Finds words by plain search, so that slow patterns run only where they can match.
#
# A pattern tried at every character costs a hundred times a literal search; the
# readers therefore look for their keywords first and match from there.

#: Occurrences kept when a repetitive output holds thousands: the first and the last.
FIRST, LAST = 200, 800


@lru_cache(maxsize=4)
def lowered(text: str) -> str:
    """The text in lower case, with every character where it was."""
    lower = text.lower()
    # İ alone becomes two characters
    return lower if len(lower) == len(text) else "İ".join(map(str.lower, text.split("İ")))


class Words:
    """Words of which few occur in a text in lower case; those that cannot are not looked for."""

    def __init__(self, words: Iterable[str]) -> None:
        self.by_sign: dict[str, list[str]] = {}
        for word in words:
            sign = next(filterfalse(str.isascii, word))
            self.by_sign.setdefault(sign, []).append(word)
        self.signs = re.compile(f"[{''.join(self.by_sign)}]")

    def of(self, lower: str) -> list[str]:
        """The words of which a text has the first sign that is not ASCII."""
        if lower.isascii():
            return []
        return [word for sign in {*self.signs.findall(lower)} for word in self.by_sign[sign]]


def occurrences(lower: str, words: Iterable[str], end: int) -> list[tuple[int, str]]:
    """(position, word) of every word before `end`, in the order of the text."""
    results = []
    for word in filter(lower.__contains__, words):
        position = lower.find(word, 0, end)
        while position >= 0:
            results.append((position, word))
            position = lower.find(word, position + len(word), end)
    if len(results) > 1:
        results.sort()
        if len(results) > FIRST + LAST:
            results = results[:FIRST] + results[-LAST:]
    return results


_FORMS = table("language_forms")
#: What is searched for a reason: a clause, or a sentence's end with the words that begin one.
_LONGEST_CLAUSE, _LONGEST_REASON = 440, 40
_SENTENCE_END = re.compile(r"[.!?]\s")


class Language(Patterns):
    """The grammar of one language: the expressions of `patterns/language_forms.yaml`.

    Attributes:
        nouns: Words that name or choose the answer, as plain search finds them.
    """

    def __init__(self, row: dict[str, Any]) -> None:
        glued = row.get("glued", False)
        self.nouns = (*row["answer"], *(() if glued else row.get("choose", ())))
        parts = {name: joined(part) for name, part in _FORMS["parts"].items()}
        parts |= _FORMS["glued" if glued else "spaced"]
        if "stated" in row:
            parts |= {"joins": parts["own_joins"], "own": joined(row["stated"])}
        if not row.get("optional"):
            parts["omitted"] = "(?!)"
        super().__init__(_FORMS, lambda key: parts[key] if key in parts else any_of(row.get(key)))
        for name, keys in _FORMS["hints"].items():
            texts = (hint for key in keys for word in row.get(key, [key]) for hint in hints(word))
            self.hints[name] = tuple(dict.fromkeys(texts))

    def of_others(self, text: str, position: int) -> bool:
        """Whether the answer that is named at `position` is another's, or an earlier one."""
        return self.search("others", text, max(0, position - 24), position) is not None

    def reason_in(self, text: str, lower: str, start: int, end: int) -> tuple[int, bool]:
        """Where `text[start:end]` turns to a reason, else `end`; and whether to another answer."""
        other, stop = None, end
        if any(map(lower[start:end].__contains__, self.nouns)):
            other = self.search("contrast", text, start, end)
        if other is None:  # a reason counts in the first sentence only
            stop = min(end, start + _LONGEST_CLAUSE)
            first = _SENTENCE_END.search(text, start, stop)
            stop = min(stop, first.start() + _LONGEST_REASON) if first else stop
        reason = self.search("reason", lower, start, stop)
        if other and (reason is None or other.start() < reason.start()):
            return other.start(), True
        return reason.start() if reason else end, False


def any_of(listed: list[str] | None) -> str:
    """One expression for any of the words, the longest first; without words it never matches."""
    every = sorted(listed or [], key=len, reverse=True)
    return "|".join(item.replace(" ", r"\s") for item in every) or "(?!)"


ROWS = tuple(table("languages").values())
LANGUAGES = tuple(map(Language, ROWS))
ENGLISH = LANGUAGES[0]
#: Noun → the languages that have it (Hindi and Marathi share theirs).
NOUNS: dict[str, list[Language]] = {}
for _one in LANGUAGES:
    for _noun in _one.nouns:
        NOUNS.setdefault(_noun, []).append(_one)

OTHER = Words(noun for noun in NOUNS if not noun.isascii())
FOREIGN = tuple(noun for noun in NOUNS if noun.isascii() and noun not in ENGLISH.nouns)
#: What begins the English words that choose an answer, of two and more: "I'd say".
_PERSONS = ("i ", "i'", "i’", "my ")


@lru_cache(maxsize=4)
def chosen(lower: str) -> tuple[str, ...]:
    """The English words that choose an answer, as far as a text in lower case has them."""
    persons = occurrences(lower, _PERSONS, len(lower))
    if all(lower[at - 1 : at].isalpha() for at, _ in persons):
        return ()
    return tuple(filter(lower.__contains__, ROWS[0]["choose"]))


@lru_cache(maxsize=4)
def foreign(lower: str) -> tuple[str, ...]:
    """The nouns in ASCII, of other languages than English, that a text in lower case has."""
    return tuple(filter(lower.__contains__, FOREIGN))


def last_noun(lower: str) -> tuple[int, str] | None:
    """Place of the last noun, and the noun."""
    nouns = (*ROWS[0]["answer"], *foreign(lower), *OTHER.of(lower), *chosen(lower))
    return max(occurrences(lower, nouns, len(lower)), default=None)


def listed(*keys: str, rows: Sequence[dict[str, Any]] = ROWS) -> list[str]:
    """The words that languages list under these keys."""
    return [word for row in rows for key in keys for word in row.get(key, ())]


def worded(name: str, form: Callable[[str], str] = str, **own: str) -> Patterns:
    """The expressions in the file `NAME.yaml`, any word of these lists in place of `<key|key>`."""
    return Patterns(
        table(name), lambda keys: own.get(keys) or all_words(*keys.split("|"), form=form)
    )


def all_words(*keys: str, form: Callable[[str], str] = str) -> str:
    """One expression for the words that the languages list under these keys, in a form."""
    every = dict.fromkeys(word if word.isascii() else form(word) for word in listed(*keys))
    spaced = any_of([word for word in every if not _glued(word)])
    return rf"(?<![^\W\d_])(?:{spaced})(?!\w)|{any_of(list(filter(_glued, every)))}"


def _glued(word: str) -> bool:
    return "\u0e00" <= word[0] <= "\u0e7f" or word[0] >= "\u3000"
