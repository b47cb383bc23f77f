"""How an answer is stated in each language: expressions made of `patterns/languages.yaml`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from routeyard.pipelines.scorers.extraction.keywords import lowered
from routeyard.pipelines.scorers.patterns import hints, joined, table

_COLON = (
    r"(?:[*_]{0,3}\s{0,2}(?:[:：=﹕]|[—–-](?=\s)|\|)|\.(?=[*_]{2})|】\s{0,2}[:：]?)"
    r"[*_]{0,3}(?:\s?\})?"
)
#: An option's letter, as no other text begins.
_LETTER = r"(?=[\s(（*\"'“‘「【\[]{0,4}(?-i:[A-Z](?![A-Za-z])))"


#: What is searched for a reason: a clause, or a sentence's end with the words that begin one.
_LONGEST_CLAUSE, _LONGEST_REASON = 440, 40
_SENTENCE_END = re.compile(r"[.!?]\s")
#: Lists of words that expressions are made of, as `<key>`.
_KEYS = ("answer", "with", "others", "is", "not", "but", "because", "if", "fill", "choose")


class Language:
    """The grammar of one language; its expressions are compiled when first asked for.

    Attributes:
        nouns: Words that name or choose the answer, as plain search finds them.
        stated: Matches from a noun up to the answer; its group `label` is a colon.
        refused: Matches from the answer on where the statement denies it.
        turned: Found in front of a noun where the answer precedes it ("8 is the answer").
        reason: Where a clause begins that gives a reason, in lower case.
        contrast: Where a clause begins that gives another answer for contrast.
        tail: What ends a sentence behind the answer.
        supposed: A word that makes a sentence a supposition.
        supposes: A word that begins one, for a later sentence in the mood of `would`.
        would: A verb of what only would be.
        negation: A word that denies.
        others: Found in front of a noun that names somebody else's answer, or an earlier one.
        hints: Name of an expression → texts in lower case of which each match holds one.
    """

    stated: re.Pattern[str]
    refused: re.Pattern[str] | None
    turned: re.Pattern[str]
    reason: re.Pattern[str]
    contrast: re.Pattern[str] | None
    tail: re.Pattern[str] | None
    supposed: re.Pattern[str] | None
    supposes: re.Pattern[str] | None
    would: re.Pattern[str] | None
    negation: re.Pattern[str]
    others: re.Pattern[str] | None

    def __init__(self, row: dict[str, Any], forms: dict[str, str | None]) -> None:
        chosen = () if row.get("glued") else row.get("choose", ())
        self.nouns = (*row["answer"], *chosen)
        self.hints = {
            "supposed": _hints(row, "if"),
            "supposes": _hints(row, "suppose"),
            "reason": _hints(row, "because", "not"),
            "turned": ("—", "–", *_hints(row, "is")),
            "others": _hints(row, "others"),
        }
        self._forms = forms

    def hinted(self, name: str, lower: str) -> bool:
        """Whether an expression can match in a text in lower case."""
        return any(map(lower.__contains__, self.hints[name]))

    def __getattr__(self, name: str) -> re.Pattern[str] | None:
        if name not in self._forms:
            raise AttributeError(name)
        form = self._forms[name]
        made = None if form is None else re.compile(form, re.IGNORECASE * (name != "reason"))
        setattr(self, name, made)
        return made

    def of_others(self, text: str, position: int) -> bool:
        """Whether the answer that is named at `position` is another's, or an earlier one."""
        begin = max(0, position - 24)
        return self.hinted("others", text[begin:position].lower()) and bool(
            self.others and self.others.search(text, begin, position)
        )

    def reason_in(self, text: str, start: int, end: int) -> tuple[int, bool]:
        """Where `text[start:end]` turns to a reason, else `end`; and whether to another answer."""
        lower, other, stop = lowered(text), None, end
        clause = lower[start:end]
        if any(map(clause.__contains__, self.nouns)) and self.hinted("others", clause):
            other = self.contrast.search(text, start, end) if self.contrast else None
        if other is None:  # a reason counts in the first sentence only
            stop = min(end, start + _LONGEST_CLAUSE)
            first = _SENTENCE_END.search(text, start, stop)
            stop = min(stop, first.start() + _LONGEST_REASON) if first else stop
        reason = None
        if self.hinted("reason", lower[start:stop]):
            reason = self.reason.search(lower, start, stop)
        if other and (reason is None or other.start() < reason.start()):
            return other.start(), True
        return reason.start() if reason else end, False


def _hints(row: dict[str, Any], *keys: str) -> tuple[str, ...]:
    words = (word for key in keys for word in row.get(key, ()))
    return tuple(dict.fromkeys(text for word in words for text in hints(word)))


def any_of(listed: list[str] | None) -> str:
    """One expression for any of the words, the longest first; without words it never matches."""
    every = sorted(listed or [], key=len, reverse=True)
    return "|".join(one.replace(" ", r"\s") for one in every) or "(?!)"


def _made(form: str, words: dict[str, str]) -> str:
    for name, expression in words.items():
        form = form.replace(f"<{name}>", expression)
    return form


def _language(row: dict[str, Any]) -> Language:
    glued = row.get("glued", False)
    words = {key: f"(?:{any_of(row.get(key))})" for key in _KEYS}
    words |= {"end": "" if glued else r"(?!\w)", "begin": "" if glued else r"\b"}
    words |= {"gap": r"\s{0,2}" if glued else r"\s{1,2}", "colon": _COLON, "letter": _LETTER}
    if "stated" in row:
        joins = (
            r"(?:\s\([^)\n]{0,40}\))?(?P<label><colon>)|(?P<head>[*_]{0,3}[ \t]{0,3}\n)|"
            + joined(row["stated"])
        )
    else:
        joins = r"(?:<gap><with><end>){0,3}(?:<gap>[*_]{0,3}<is><end>\s{0,2}[:：]?"
        joins += r"|(?P<label><colon>)|(?P<head>[*_]{0,3}[ \t]{0,3}\n)"
        joins += r"|(?=\s))" if row.get("optional") else ")"
        if "but" in row:
            joins += r"(?:\s{0,3}<not>\s[^.\n]{1,60}?\s<but><end>)?"
        joins += r"(?!\s{0,3}<not><end>)"
    word = r"<begin><words><end>"
    chosen = r"(?P<chosen><choose>)<end>(?=[\s(*\"'$]{1,4}(?-i:[-\d\\A-Z]))"
    forms = {
        "stated": ("", rf"(?:<answer>(?:{joins})|{chosen})(?:(?:\s{{0,2}}<fill>){{1,3}}<letter>)?"),
        "turned": (
            "",
            r"(?P<said>[^\s,;:!?。，>]{1,40}?)<gap>(?:<is>|[—–])(?:\s(?:[^\W\d]{1,12}\s){0,3}|)$",
        ),
        "reason": (
            "",
            r"[\s,;，；、。.।۔(（](?:(?:(?<=\s)|(?<!\s)\s{0,2})<because>"
            r"|(?<=[,;，；、(（])\s{0,2}<not>)<end>",
        ),
        "negation": ("", r"<begin><not><end>"),
        "contrast": ("others", r"[,;，；、。.।۔(（]\s{0,2}<words><gap><answer>"),
        "refused": ("not_after", r"[^.。।۔\n]{0,60}?<words><end>"),
        "tail": ("tail", r"\s{0,2}<words>[\s.。।۔]*$"),
        "supposed": ("if", word),
        "supposes": ("suppose", word),
        "would": ("would", word),
        "others": ("others", r"<begin><words>[\s*_]{0,3}$"),
    }
    return Language(
        row,
        {
            name: _made(form, words | {"words": f"(?:{any_of(row.get(key))})"})
            if not key or row.get(key)
            else None
            for name, (key, form) in forms.items()
        },
    )


ROWS = tuple(table("languages").values())
LANGUAGES = tuple(map(_language, ROWS))
ENGLISH = LANGUAGES[0]
#: Noun → the languages that have it (Hindi and Marathi share theirs).
NOUNS: dict[str, list[Language]] = {}
for _one in LANGUAGES:
    for _noun in _one.nouns:
        NOUNS.setdefault(_noun, []).append(_one)

#: Verbs that choose an option, beside English.
CHOOSING = tuple(word for row in ROWS[1:] for word in row.get("choose", ()))
#: What begins the English ones, of two words and more: "I'd say".
_PERSONS = ("i ", "i'", "i’", "my ")
_FIRST_PERSON = re.compile(r"[im](?:(?<=i)[ '’](?<![^\W\d_]..)|y (?<![^\W\d_]...))")


@lru_cache(maxsize=4)
def chosen(lower: str) -> tuple[str, ...]:
    """The English words that choose an answer, as far as a text in lower case has them."""
    if not any(map(lower.__contains__, _PERSONS)) or _FIRST_PERSON.search(lower) is None:
        return ()
    return tuple(filter(lower.__contains__, ROWS[0]["choose"]))


def all_words(*keys: str, form: Callable[[str], str] = str) -> str:
    """One expression for the words that the languages list under these keys, in a form."""
    listed = (word for row in ROWS for key in keys for word in row.get(key, ()))
    every = dict.fromkeys(word if word.isascii() else form(word) for word in listed)
    spaced = any_of([word for word in every if not _glued(word)])
    return rf"(?<![^\W\d_])(?:{spaced})(?!\w)|{any_of(list(filter(_glued, every)))}"


def filled(expression: str, form: Callable[[str], str] = str) -> str:
    """An expression with the words of all languages in place of each `<key>`."""
    return re.sub(r"<(\w+)>", lambda key: f"(?:{all_words(key[1], form=form)})", expression)


def _glued(word: str) -> bool:
    return "\u0e00" <= word[0] <= "\u0e7f" or word[0] >= "\u3000"
