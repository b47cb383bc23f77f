"""How an answer is stated in each language: expressions made of `patterns/languages.yaml`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from routeyard.pipelines.scorers.patterns import joined, table

_COLON = (
    r"(?:[*_]{0,3}\s{0,2}(?:[:：=﹕]|[—–-](?=\s)|\|)|\.(?=[*_]{2})|】\s{0,2}[:：]?)"
    r"[*_]{0,3}(?:\s?\})?"
)
#: An option's letter, as no other text begins.
_LETTER = r"(?=[\s(（*\"'“‘「【\[]{0,4}(?-i:[A-Z](?![A-Za-z])))"


#: Lists of words that expressions are made of, as `<key>`.
_KEYS = ("answer", "with", "others", "is", "not", "but", "because", "if", "fill", "choose")


@dataclass(frozen=True, slots=True)
class Language:
    """The grammar of one language.

    Attributes:
        nouns: Words that name or choose the answer, as plain search finds them.
        stated: Matches from a noun up to the answer; its group `label` is a colon.
        refused: Matches from the answer on where the statement denies it.
        turned: Found in front of a noun where the answer stands before it ("8 is the answer").
        reason: Where a clause begins that gives a reason or another answer for contrast.
        tail: What ends a sentence behind the answer.
        supposed: A word that makes a sentence a supposition.
        supposes: A word that begins one, for a later sentence in the mood of `would`.
        would: A verb of what only would be.
        negation: A word that denies.
        others: Found in front of a noun that names somebody else's answer, or an earlier one.
    """

    nouns: tuple[str, ...]
    stated: re.Pattern[str]
    refused: re.Pattern[str] | None
    turned: re.Pattern[str]
    reason: re.Pattern[str]
    tail: re.Pattern[str] | None
    supposed: re.Pattern[str] | None
    supposes: re.Pattern[str] | None
    would: re.Pattern[str] | None
    negation: re.Pattern[str]
    others: re.Pattern[str] | None


def any_of(listed: list[str] | None) -> str:
    """One expression for any of the words, the longest first; without words it never matches."""
    every = sorted(listed or [], key=len, reverse=True)
    return "|".join(one.replace(" ", r"\s") for one in every) or "(?!)"


def _made(form: str, **words: str) -> re.Pattern[str]:
    for name, expression in words.items():
        form = form.replace(f"<{name}>", expression)
    return re.compile(form, re.IGNORECASE)


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
    turned = r"(?P<said>[^\s,;:!?。，>]{1,40}?)<gap>(?:<is>|[—–])(?:\s(?:[^\W\d]{1,12}\s){0,3}|)$"

    def optional(key: str, form: str) -> re.Pattern[str] | None:
        return _made(form, words=f"(?:{any_of(row[key])})", **words) if row.get(key) else None

    word = r"<begin><words><end>"
    chosen = r"(?P<chosen><choose>)<end>(?=[\s(*\"'$]{1,4}(?-i:[-\d\\A-Z]))"
    return Language(
        (*row["answer"], *(() if glued else row.get("choose", ()))),
        _made(rf"(?:<answer>(?:{joins})|{chosen})(?:(?:\s{{0,2}}<fill>){{1,3}}<letter>)?", **words),
        optional("not_after", r"[^.。।۔\n]{0,60}?<words><end>"),
        _made(turned, **words),
        _made(
            r"(?:[,;，；、。.।۔(（]\s{0,2}|\s)<because><end>|[,;，；、(（]\s{0,2}<not><end>"
            r"|[,;，；、。.।۔(（]\s{0,2}(?P<other><others><gap><answer>)",
            **words,
        ),
        optional("tail", r"\s{0,2}<words>[\s.。।۔]*$"),
        optional("if", word),
        optional("suppose", word),
        optional("would", word),
        _made(r"<begin><not><end>", **words),
        optional("others", r"<begin><words>[\s*_]{0,3}$"),
    )


LANGUAGES = tuple(map(_language, table("languages").values()))
ENGLISH = LANGUAGES[0]
#: Noun → the languages that have it (Hindi and Marathi share theirs).
NOUNS: dict[str, list[Language]] = {}
for _one in LANGUAGES:
    for _noun in _one.nouns:
        NOUNS.setdefault(_noun, []).append(_one)


def denied(text: str, start: int, end: int) -> bool:
    """Whether the value `text[start:end]` is denied or compared with, in any language.

    "not 8", "8 değil", "larger than 8".
    """
    return _DENIED.beside(text, start, end)


def bounds(text: str, start: int, end: int, question: str) -> bool:
    """Whether a value is a bound, "at least 8", "8 以上", where the question asks for none."""
    return _BOUND.beside(text, start, end) and not _asks_bound(question)


@lru_cache(maxsize=8192)
def _asks_bound(question: str) -> bool:
    return _LEAST.search(question) is not None


def doubted(text: str, start: int) -> bool:
    """Whether the clause before `start` denies, doubts or ascribes to others what follows.

    "I don't think that", "some people say", in any language.
    """
    before = text[max(0, start - 110) : start].lower()
    if before.isascii() and _HINT_WORDS.isdisjoint(before.replace(",", " ").split()):
        return False
    return any(map(before.__contains__, _HINTS)) and _DOUBTS.search(before) is not None


def wonders(text: str, start: int) -> bool:
    """Whether the sentence that holds `start` ends in a question mark."""
    return _WONDERS.match(text, start) is not None


def supposed(languages: Iterable[Language], text: str, start: int) -> bool:
    """Whether the statement at `start` holds only under a condition.

    Its sentence has an "if" before it, or is in the mood of "would" behind a "suppose".
    """
    *before, own = _SENTENCE.split(text[max(0, start - 240) : start])
    both = f"{next(filter(None, reversed(before)), '')} {own}"
    rest = _SENTENCE.split(text[start : start + 120], maxsplit=1)[0]
    return any(
        (one.supposed is not None and one.supposed.search(own))
        or (
            one.supposes is not None
            and one.supposes.search(both)
            and (one.would is None or one.would.search(f"{own} {rest}"))
        )
        for one in languages
    )


def supposes(text: str) -> bool:
    """Whether the last sentence tells what the answer would be under a condition."""
    found = [*_ANSWER.finditer(text)][-1:]
    return any(supposed(NOUNS.get(one[0].lower(), ()), text, one.start()) for one in found)


def declines(text: str) -> bool:
    """Whether a sentence says that it cannot answer, in any language."""
    return _DECLINES.search(text) is not None


_ROWS = tuple(table("languages").values())
_SIGNS = " \t\n*$`\"'("
_ASIAN = "\u3040-\u9fff\uac00-\ud7af\u0e00-\u0e7f"
_SENTENCE = re.compile(r"\.\s|[\n。।۔]")


class _Sides:
    """Words that change a value in front of it (`before`) or behind it (`after`).

    A text in ASCII is searched for ASCII words only.
    """

    def __init__(self, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        self.found = []
        for keep in (str.isascii, bool):
            first, then = (
                [w for row in _ROWS for key in keys for w in row.get(key, ()) if keep(w)]
                for keys in (before, after)
            )
            words = any_of(list(dict.fromkeys(first)))
            form = rf"(?:(?<!\w)|(?<=[{_ASIAN}]))(?:{words})[\s*$`\"'(€£]{{0,3}}"
            ends = tuple({word.lower().split()[-1] for word in first})
            behind = re.compile(rf"[\s)*$}}]{{0,3}}(?:{any_of(then)})", re.IGNORECASE)
            boxed = r"(?:\\f?boxed\{)?$"
            self.found.append((ends, re.compile(form + boxed, re.IGNORECASE), behind))

    def beside(self, text: str, start: int, end: int) -> bool:
        """Whether one of the words stands beside `text[start:end]`."""
        begin = max(0, start - 32)
        before = text[begin:start].removesuffix("{").removesuffix("\\boxed")
        ends, form, behind = self.found[not (before + text[end : end + 24]).isascii()]
        if before.rstrip(_SIGNS).lower().endswith(ends) and form.search(text, begin, start):
            return True
        return behind.match(text, end, end + 24) is not None


_DENIED = _Sides(("not", "than"), ("not_after", "wrong"))
_BOUND = _Sides(("bound",), ("beyond",))
_ANSWER = re.compile(any_of([*NOUNS]), re.IGNORECASE)
#: Verbs that choose an option, beside English.
CHOOSING = tuple(word for row in _ROWS for word in row.get("choose", ()))


def all_words(*keys: str, form: Callable[[str], str] = str) -> str:
    """One expression for the words that the languages list under these keys, in a form."""
    listed = (word for row in _ROWS for key in keys for word in row.get(key, ()))
    every = dict.fromkeys(word if word.isascii() else form(word) for word in listed)
    spaced = [rf"(?<![^\W\d_]){any_of([word])}(?!\w)" for word in every if not _glued(word)]
    return "|".join([*sorted(spaced, key=len, reverse=True), any_of(list(filter(_glued, every)))])


def filled(expression: str, form: Callable[[str], str] = str) -> str:
    """An expression with the words of all languages in place of each `<key>`."""
    return re.sub(r"<(\w+)>", lambda key: f"(?:{all_words(key[1], form=form)})", expression)


def _glued(word: str) -> bool:
    return "\u0e00" <= word[0] <= "\u0e7f" or word[0] >= "\u3000"


_DECLINES = re.compile(all_words("declines"), re.IGNORECASE)
_ASKS = any_of([word for row in _ROWS for word in row.get("least", ())])
#: "how many at least", but not "in at least one store"
_LEAST = re.compile(rf"(?:{_ASKS})(?!\s{{0,2}}(?:\d|(?:a|one|two)\b))", re.IGNORECASE)
#: A doubt reaches over a comma and "that" (dass, что, że …) to the end of the clause or a "but".
DOUBTS = (
    r"(?:<doubts>|(?:<some>)(?:\s\w{1,12}){0,3}\s(?:<say>))(?:,\s(?:das?s|что|чтобы|що|че|że|ze|že|hogy|да|ότι)\b)?"
    r"(?:(?!<but>)[^,;:.!?\n，。；：])*$"
)
_DOUBTS = re.compile(filled(DOUBTS))
_HINTS = {word.lower() for row in _ROWS for key in ("doubts", "say") for word in row.get(key, ())}
_HINT_WORDS = frozenset(word.split()[-1] for word in _HINTS)
_WONDERS = re.compile(r"(?:[^.!?\n。！？]|\.(?=\d)){0,200}[?？؟]")
